import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Check, Diagnosis, Finding } from "../../../hypervisor/index.ts";
import { connectionProblems } from "../../../hypervisor/index.ts";
import { releases, tokenUser } from "../../../sim/index.ts";
import { data, error, ScriptedServer } from "../fixture.ts";
import type { DoctorEndpoint } from "./doctor.ts";
import { newTokenCommands, olderReleaseNotes } from "./grants.ts";
import { optionalRights } from "../rights.ts";
import {
  certificate,
  type Clinic,
  endpoint,
  neverSends,
  openClinic,
  pinned,
  pveum,
  tokenId,
  url,
  withoutRights,
} from "./testing.ts";

async function diagnose(
  clinic: Clinic,
  options: Parameters<Clinic["doctor"]>[0] = {},
): Promise<Diagnosis> {
  return await clinic.settle(clinic.doctor(options).diagnose());
}

function about({ findings }: Diagnosis, check: Check): Finding[] {
  return findings.filter((finding) => finding.check === check);
}

function worst(diagnosis: Diagnosis, check: Check): Finding {
  const found = about(diagnosis, check);
  const [first] = [...found.filter(({ level }) => level === "problem"), ...found];
  assert(first !== undefined, `nothing is said about ${check}`);
  return first;
}

describe("the rights of a token", () => {
  for (const release of releases) {
    it(`are granted by the printed commands, exactly, on ${release}`, async () => {
      const clinic = openClinic({ release, change: withoutRights });
      const before = worst(await diagnose(clinic), "Rights");
      assert.equal(before.level, "problem");
      assert.match(before.message, /lacks .*VM\.Allocate.* on \/vms/);
      for (const command of before.commands ?? []) await pveum(clinic, command);
      const after = await diagnose(clinic);
      assert.deepEqual(
        about(after, "Rights").map(({ level }) => level),
        ["ok"],
        "nothing is missing, and nothing is too much",
      );
      assert.deepEqual(connectionProblems(after), []);
    });

    it(`that are too many are flagged, and gone after the printed commands, on ${release}`, async () => {
      const clinic = openClinic({ release });
      const before = worst(await diagnose(clinic), "Rights");
      assert.equal(before.level, "warning");
      assert.match(before.message, /Permissions\.Modify, .*rules the whole cluster/);
      const separation = `pveum user token modify ${tokenUser} berth --privsep 1`;
      assert.equal(before.commands?.at(-1), separation);
      for (const command of before.commands ?? []) {
        if (command !== separation) await pveum(clinic, command);
      }
      // What the last command does on a host.
      for (const { tokens } of clinic.model.cluster.state.users) {
        for (const token of tokens) token.privsep = 1;
      }
      assert.equal(worst(await diagnose(clinic), "Rights").level, "ok");
    });
  }

  it("that only some declarations need are neither missing nor too much", async () => {
    const clinic = openClinic({ change: withoutRights });
    for (const command of worst(await diagnose(clinic), "Rights").commands ?? []) {
      await pveum(clinic, command);
    }
    const { message } = worst(await diagnose(clinic), "Rights");
    assert.match(message, /it would need Sys.Console .*Mapping.Use/);
    const { roles } = clinic.model.cluster.state;
    const base = roles["Berth"] ?? [];
    roles["Berth"] = [...base, "Mapping.Use"];
    const more = worst(await diagnose(clinic), "Rights");
    assert.equal(more.level, "ok");
    assert.match(
      more.message,
      /it would need Sys.Console to declare high availability, Sys.Modify/,
    );
    roles["Berth"] = [...base, "Sys.Console"];
    const ruling = worst(await diagnose(clinic), "Rights");
    assert.equal(ruling.level, "warning", "with this one can open a shell on every node");
  });

  it("to let a node fetch a disc are named by the word that the release has for it", async () => {
    const clinic = openClinic({ change: withoutRights, release: "7.4" });
    for (const command of worst(await diagnose(clinic), "Rights").commands ?? []) {
      await pveum(clinic, command);
    }
    const { level, message } = worst(await diagnose(clinic), "Rights");
    assert.equal(level, "ok");
    assert.match(message, /Sys\.Modify to set the order of start-up and let nodes fetch discs/);
    const named = (minor: number): string[] => {
      const rights = optionalRights({ text: `8.${minor}`, major: 8, minor });
      const fetching = rights.filter(({ reason }) => reason.includes("fetch"));
      return fetching.map(({ path, privilege }) => `${privilege} on ${path}`);
    };
    assert.deepEqual(named(1), ["Sys.Modify on /"]);
    assert.deepEqual(named(3), ["Sys.AccessNetwork on /nodes"]);
    assert.deepEqual(named(4), [], "there it is among those that everybody needs");
  });

  it("of a role that is there already are put right instead of made anew", async () => {
    const clinic = openClinic({ change: withoutRights });
    clinic.model.cluster.state.roles["Berth"] = ["VM.Audit"];
    const { commands = [] } = worst(await diagnose(clinic), "Rights");
    assert.match(commands[0] ?? "", /^pveum role modify Berth --privs /);
    for (const command of commands) await pveum(clinic, command);
    assert.equal(worst(await diagnose(clinic), "Rights").level, "ok");
  });

  it("of a token yet to be made are told for every release", async () => {
    const [newest = ""] = newTokenCommands(tokenId);
    for (const release of releases) {
      const clinic = openClinic({ release, change: withoutRights });
      const [exact = ""] = worst(await diagnose(clinic), "Rights").commands ?? [];
      const note = olderReleaseNotes().find((text) => text.includes(release)) ?? "";
      const [, out = "", more = ""] = / leave out ([^,]*)(?:, and add (.*))?$/.exec(note) ?? [];
      const kept = words(newest).filter((word) => !words(out).includes(word));
      assert.deepEqual([...kept, ...words(more)].toSorted(), words(exact).toSorted(), release);
    }
  });

  it("names no privilege that a release does not know", async () => {
    const clinic = openClinic({ release: "7.4", change: withoutRights });
    const { commands = [] } = worst(await diagnose(clinic), "Rights");
    assert.doesNotMatch(commands.join("\n"), /SDN\.Use|Sys\.AccessNetwork|VM\.GuestAgent/);
  });
});

function words(text: string): string[] {
  return text.match(/[A-Z]\w+(\.\w+)+/g) ?? [];
}

describe("an endpoint", () => {
  const silent: DoctorEndpoint = {
    url: "https://pve9.example:8006",
    probe: async () => ({ is: "silent", why: "nothing listens there" }),
    send: async () => ({ type: "notSent", why: "unreachable", detail: "refused" }),
  };

  it("that cannot be reached is a problem if there is no other, else a warning", async () => {
    const clinic = openClinic();
    const alone = await diagnose(clinic, { endpoints: [silent] });
    assert.deepEqual(
      alone.findings.map(({ check, level }) => [check, level]),
      [["Endpoint", "problem"]],
    );
    assert.match(alone.findings[0]?.message ?? "", /pve9.example.*nothing listens there/);
    const both = await diagnose(clinic, { endpoints: [silent, endpoint(clinic.send)] });
    assert.deepEqual(
      about(both, "Endpoint").map(({ level }) => level),
      ["warning", "ok"],
    );
    assert.equal(both.version, "9.2.11", "the others are asked for all the rest");
  });

  it("with another certificate than the pinned one gets nothing, least of all the token", async () => {
    const fingerprint = Array(32).fill("BB").join(":");
    const endpoints = [endpoint(neverSends, { fingerprint })];
    const diagnosis = await diagnose(openClinic(), { endpoints });
    const finding = worst(diagnosis, "Certificate");
    assert.equal(finding.level, "problem");
    assert.match(finding.message, /another certificate than the pinned one: BB:BB/);
    assert.match(finding.remedy ?? "", /pvenode cert info/);
  });

  it("that is no Proxmox VE is told apart from one that refuses", async () => {
    const server = new ScriptedServer({ "GET /version": data({ hello: "world" }) });
    const diagnosis = await diagnose(openClinic(), { endpoints: [endpoint(server.send)] });
    assert.match(worst(diagnosis, "Endpoint").message, /no Proxmox VE/);
  });

  it("of another cluster than the other one is named", async () => {
    const [one, two] = [openClinic({ seed: 1 }), openClinic({ seed: 2 })];
    const other = { ...endpoint(two.send), url: "https://other:8006" };
    const work = one.doctor({ endpoints: [endpoint(one.send), other] }).diagnose();
    const diagnosis = await two.settle(one.settle(work));
    assert.match(worst(diagnosis, "Identity").message, /different clusters/);
  });
});

describe("a certificate", () => {
  const judged = async (shown: object, tls = pinned): Promise<Finding> => {
    const clinic = openClinic();
    const endpoints = [endpoint(clinic.send, shown)];
    return worst(await diagnose(clinic, { endpoints, tls }), "Certificate");
  };

  it("that is pinned and has expired is a warning: the pin still proves it", async () => {
    const { level, message } = await judged({ validToMs: Date.UTC(2026, 0, 1) });
    assert.equal(level, "warning");
    assert.match(message, /expired on 2026-01-01/);
  });

  it("that will expire soon is a warning", async () => {
    const { level, message } = await judged({ validToMs: Date.UTC(2026, 0, 9) });
    assert.deepEqual([level, message.includes("expires in 6 days")], ["warning", true]);
  });

  for (const { refusal, says } of [
    { refusal: "CERT_HAS_EXPIRED", says: /expired on 2027-01-01/ },
    { refusal: "ERR_TLS_CERT_ALTNAME_INVALID", says: /other names: pve1.example/ },
    { refusal: "SELF_SIGNED_CERT_IN_CHAIN", says: /not signed by the authority in tls.ca/ },
  ]) {
    it(`that the authority does not vouch for (${refusal}) is a problem`, async () => {
      const probe = async () => ({ is: "shown", certificate, refusal }) as const;
      const endpoints = [{ url, probe, send: neverSends }];
      const diagnosis = await diagnose(openClinic(), { endpoints, tls: { ca: "PEM" } });
      const finding = worst(diagnosis, "Certificate");
      assert.equal(finding.level, "problem");
      assert.match(finding.message, says);
      assert.ok(finding.remedy, "it says what to do");
    });
  }
});

describe("the system", () => {
  it("refuses a token in one sentence, with the commands for a new one", async () => {
    const clinic = openClinic({
      change: (state) => {
        for (const user of state.users) user.tokens = [];
      },
    });
    const diagnosis = await diagnose(clinic);
    const finding = worst(diagnosis, "Credentials");
    assert.match(finding.message, /berth@pve!berth is refused: 401/);
    assert.equal(finding.commands?.length, 4);
    assert.deepEqual(connectionProblems(diagnosis), [finding]);
  });

  it("gives a new token all it needs by the commands for one", async () => {
    const clinic = openClinic({
      change: (state) => {
        state.users = state.users.filter(({ userid }) => userid !== tokenUser);
        state.acl = [];
      },
    });
    for (const command of worst(await diagnose(clinic), "Credentials").commands ?? []) {
      await pveum(clinic, command);
    }
    const { users } = clinic.model.cluster.state;
    const [token] = users.find(({ userid }) => userid === tokenUser)?.tokens ?? [];
    assert(token !== undefined, "the token is there");
    // The person types the secret that the command printed.
    token.secret = "00000000-0000-4000-8000-0000000000aa";
    const diagnosis = await diagnose(clinic);
    assert.deepEqual(
      diagnosis.findings.filter(({ level }) => level !== "ok"),
      [],
    );
  });

  it("that is too old is a problem", async () => {
    const server = new ScriptedServer({
      "GET /version": data({ version: "6.4-15" }),
      "GET /nodes": data([{ node: "pve1", status: "online" }]),
      "GET /nodes/pve1/certificates/info": data([
        { filename: "pve-root-ca.pem", fingerprint: "AB" },
      ]),
      "GET /access/permissions": data({}),
      "GET /cluster/resources": data([]),
      "GET /cluster/status": data([]),
    });
    const diagnosis = await diagnose(openClinic(), { endpoints: [endpoint(server.send)] });
    assert.match(worst(diagnosis, "Version").message, /6\.4-15 is too old/);
    assert.deepEqual(about(diagnosis, "Rights"), [], "its privileges are other ones");
  });

  it("that is another one than before is a problem", async () => {
    const diagnosis = await diagnose(openClinic(), { systemId: "pve-root-ca:00" });
    assert.match(worst(diagnosis, "Identity").message, /another system answers/);
  });

  for (const { skewMs, level } of [
    { skewMs: 3_000, level: "ok" },
    { skewMs: -60_000, level: "warning" },
    { skewMs: 600_000, level: "problem" },
  ]) {
    it(`whose clock is ${skewMs} ms off is ${level}`, async () => {
      const diagnosis = await diagnose(openClinic({ skewMs }));
      assert.equal(worst(diagnosis, "Clock").level, level);
    });
  }
});

describe("the cluster", () => {
  it("has a problem with a node that is down, and another without a majority", async () => {
    const clinic = openClinic();
    clinic.model.crashNode("pve2");
    const one = await diagnose(clinic);
    assert.match(worst(one, "Nodes").message, /the node pve2 does not answer/);
    assert.deepEqual(connectionProblems(one), [], "it comes back by itself");
    clinic.model.crashNode("pve3");
    assert.match(
      about(await diagnose(clinic), "Nodes")
        .map(({ message }) => message)
        .join("\n"),
      /no majority/,
    );
  });

  it("has storages that are full, away, or not what the Hypervisor says", async () => {
    const clinic = openClinic({
      change: (state) => {
        const shared = state.storages.find(({ storage }) => storage === "shared");
        assert(shared !== undefined);
        shared.disable = 1;
      },
    });
    clinic.model.setCapacity("pve1:/var/lib/vz", 445 * 1024 ** 2);
    const defaults = { storage: "fast", imageStorage: "local-zfs" };
    const found = about(await diagnose(clinic, { defaults }), "Storages");
    const text = found.map(({ level, message }) => `${level}: ${message}`).join("\n");
    assert.match(text, /problem: the storage local on pve1 is 98 % full: 5.0 MiB free/);
    assert.match(text, /warning: the storage shared is not available/);
    assert.match(text, /problem: spec.defaults.storage is fast, and there is no such storage/);
    assert.match(
      text,
      /problem: spec.defaults.imageStorage is local-zfs, which does not take import/,
    );
  });

  it("has locks that outlived their task, and tells them from those that did not", async () => {
    const clinic = openClinic();
    const { model } = clinic;
    model.writeGuestFile("pve1", 100, "name: dead\nlock: backup\n");
    model.writeGuestFile("pve1", 101, "lock: create\n");
    model.writeGuestFile("pve2", 102, "name: asleep\nlock: suspended\n");
    const found = about(await diagnose(clinic), "Locks");
    assert.deepEqual(
      found.map(({ level, commands }) => [level, commands]),
      [
        ["warning", ["qm unlock 100"]],
        ["warning", ["qm unlock 101", "qm destroy 101 --purge"]],
      ],
    );
  });

  it("leaves a lock alone while the work under it runs", async () => {
    const running = "UPID:pve1:00001234:00ABCDEF:69573C86:qmclone:900:root@pam:";
    const row = { type: "qemu", vmid: 901, node: "pve1", status: "unknown", lock: "clone" };
    const clinic = openClinic();
    const held = new ScriptedServer({
      ...scripted(),
      "GET /cluster/resources": data([{ type: "node", node: "pve1", status: "online" }, row]),
      "GET /nodes/pve1/tasks": data([{ upid: running }]),
    });
    const diagnosis = await diagnose(clinic, { endpoints: [endpoint(held.send)] });
    assert.deepEqual(
      about(diagnosis, "Locks").map(({ level }) => level),
      ["ok"],
      "a clone is logged under its source",
    );
  });
});

function scripted(): ConstructorParameters<typeof ScriptedServer>[0] {
  const root = { filename: "pve-root-ca.pem", fingerprint: "AB" };
  return {
    "GET /version": data({ version: "9.2.1" }),
    "GET /nodes": data([{ node: "pve1", status: "online" }]),
    "GET /nodes/pve1/certificates/info": data([root]),
    "GET /access/permissions": data({}),
    "GET /access/roles": error(403, "Permission check failed"),
    "GET /cluster/status": data([]),
  };
}

it("nothing is ever written, whatever is found", async () => {
  const clinic = openClinic();
  await diagnose(clinic);
  await clinic.settle(clinic.doctor().snapshot());
  assert.ok(clinic.requests.length > 10);
  assert.deepEqual(
    clinic.requests.filter((request) => !request.startsWith("GET ")),
    [],
  );
  assert.ok(!JSON.stringify(clinic.requests).includes(tokenId), "no token in an address");
});
