import { later, say, siteOf, type Trouble, type TroubleMakers } from "./trouble.ts";

/** What goes wrong on the clusters themselves. */
export function onTheHypervisor(makers: TroubleMakers): Trouble[] {
  return [
    killWorker(makers),
    failWorker(makers),
    noWorker(makers),
    slowWorkers(makers),
    crashNode(makers),
    loseQuorum(makers),
    fillStorage(makers),
    oldLists(makers),
    refuseToken(makers),
    replaceToken(makers),
    upgrade(makers),
    changeHypervisor(makers),
  ];
}

function killWorker(makers: TroubleMakers): Trouble {
  const { dice } = makers;
  return {
    name: "kill a worker",
    weight: 2,
    strike: () => {
      const site = siteOf(makers);
      const steps = dice.between(1, 8);
      say(makers, site, `a worker is killed at its step ${steps}`);
      site.model.faults.onStep({
        verdict: { kind: "kill" },
        matches: ({ name, steps: at }) => isWorker(name) && at >= steps,
      });
    },
  };
}

function failWorker(makers: TroubleMakers): Trouble {
  const { dice } = makers;
  return {
    name: "fail a worker",
    weight: 2,
    strike: () => {
      const site = siteOf(makers);
      const steps = dice.between(1, 8);
      say(makers, site, `a worker fails at its step ${steps}`);
      const error = new Error("Input/output error");
      site.model.faults.onStep({
        verdict: { kind: "fail", error },
        matches: ({ name, steps: at }) => isWorker(name) && at >= steps,
      });
    },
  };
}

function noWorker(makers: TroubleMakers): Trouble {
  return {
    name: "no worker",
    weight: 1,
    strike: () => {
      const site = siteOf(makers);
      say(makers, site, "the next worker cannot be started");
      site.model.faults.onRequest({
        kind: "noWorker",
        matches: ({ method }) => method === "POST",
      });
    },
  };
}

/** Longer than anybody waits for a reply, and than a request without one may take effect. */
function slowWorkers(makers: TroubleMakers): Trouble {
  const { dice } = makers;
  return {
    name: "slow workers",
    weight: 1,
    strike: () => {
      const site = siteOf(makers);
      const ms = dice.pick([10_000, 70_000, 200_000]);
      say(makers, site, `workers take ${ms} ms longer`);
      site.slowDown(ms);
      later(makers, [3_000, 60_000], () => site.slowDown(0));
    },
  };
}

function crashNode(makers: TroubleMakers): Trouble {
  const { dice } = makers;
  return {
    name: "crash a node",
    weight: 1,
    strike: () => {
      const site = siteOf(makers);
      const node = dice.pick(["pve1", "pve2", "pve3"]);
      const { nodes, ha } = site.model.cluster.state;
      // Under high availability machines would be taken over without their disks.
      if (nodes.some(({ isOnline }) => !isOnline) || Object.keys(ha).length > 0) return;
      say(makers, site, `${node} loses power`);
      site.model.crashNode(node);
      site.personActed();
      later(makers, [5_000, 90_000], () => {
        site.model.startNode(node);
        say(makers, site, `${node} is back`);
      });
    },
  };
}

function loseQuorum(makers: TroubleMakers): Trouble {
  return {
    name: "lose quorum",
    weight: 1,
    strike: () => {
      const site = siteOf(makers);
      say(makers, site, "the quorum is lost");
      site.model.faults.hasNoQuorum = true;
      later(makers, [3_000, 60_000], () => {
        site.model.faults.hasNoQuorum = false;
      });
    },
  };
}

function fillStorage(makers: TroubleMakers): Trouble {
  const { dice } = makers;
  return {
    name: "fill the storage",
    weight: 1,
    strike: () => {
      const site = siteOf(makers);
      const backing = `${dice.pick(["pve1", "pve2"])}:rpool/data`;
      const { capacities } = site.model.cluster.state;
      const bytes = capacities[backing];
      if (bytes === undefined || bytes === 0) return;
      say(makers, site, `${backing} is full`);
      site.model.setCapacity(backing, 0);
      later(makers, [3_000, 60_000], () => site.model.setCapacity(backing, bytes));
    },
  };
}

function oldLists(makers: TroubleMakers): Trouble {
  return {
    name: "old lists",
    weight: 2,
    strike: () => {
      const site = siteOf(makers);
      say(makers, site, "its lists are old");
      site.model.cluster.board.freeze();
      later(makers, [3_000, 60_000], () => site.model.cluster.board.thaw());
    },
  };
}

function refuseToken(makers: TroubleMakers): Trouble {
  return {
    name: "refuse the token",
    weight: 1,
    strike: () => {
      const site = siteOf(makers);
      say(makers, site, "Berth's account is disabled");
      site.letIn(false);
      later(makers, [3_000, 60_000], () => site.letIn(true));
    },
  };
}

function replaceToken(makers: TroubleMakers): Trouble {
  return {
    name: "replace the token",
    weight: 1,
    strike: () => makers.people.replaceToken(siteOf(makers)),
  };
}

function upgrade(makers: TroubleMakers): Trouble {
  return {
    name: "upgrade",
    weight: 1,
    strike: () => makers.people.upgrade(siteOf(makers)),
  };
}

function changeHypervisor(makers: TroubleMakers): Trouble {
  return {
    name: "change a Hypervisor",
    weight: 1,
    strike: () => makers.people.changeHypervisor(siteOf(makers)),
  };
}

/** Tasks have names like "qmcreate:101"; requests begin with their method. */
function isWorker(name: string): boolean {
  return name.startsWith("qm");
}
