import type { ProxmoxModel } from "./model.ts";
import { isRelease, type Release } from "./release.ts";
import type { StorageConfig } from "./state.ts";

/** What the hooks act on: the model, and a way to begin anew with an empty one. */
export interface HookTarget {
  model(): ProxmoxModel;
  reset(release: Release): void;
}

type Body = Readonly<Record<string, unknown>>;

/**
 * The test hooks under /_sim/: preparation that no API offers, such as a stuck lock. They are for
 * tests on loopback. Undefined where there is no such hook.
 */
export function runHook(target: HookTarget, action: string, body: Body): object | undefined {
  const hook = Object.hasOwn(hooks, action) ? hooks[action] : undefined;
  if (hook === undefined) return undefined;
  return hook(target, body) ?? {};
}

const hooks: Readonly<Record<string, (target: HookTarget, body: Body) => object | void>> = {
  reset: (target, { release }) => {
    const asked = text(release);
    if (isRelease(asked)) target.reset(asked);
    return {};
  },
  fixture: (target, body) => buildFixture(target.model(), body),
  "orphan-volumes": (target, { vmid }) => target.model().removeGuestFile(Number(vmid)),
  "set-lock": (target, { vmid, lock }) => target.model().setLock(Number(vmid), text(lock)),
  "clear-lock": (target, { vmid }) => target.model().setLock(Number(vmid), undefined),
  "slow-storage": (target, { ms }) => {
    target.model().cluster.slowStorageMs = Number(ms);
    return {};
  },
  "kill-worker": (target, { upid }) => {
    target.model().killWorker(text(upid));
    return {};
  },
  "kill-vm": (target, { vmid }) => target.model().killMachine(Number(vmid)),
  "crash-node": (target, { node }) => target.model().crashNode(text(node)),
  "start-node": (target, { node }) => target.model().startNode(text(node)),
  tasks: (target) => ({ tasks: taskTimes(target.model()) }),
  "remove-volume": (target, { volid }) => {
    const model = target.model();
    model.removeVolume(firstNode(model), text(volid));
  },
  "corrupt-volume": (target, { volid }) => {
    const model = target.model();
    model.corruptVolume(firstNode(model), text(volid));
  },
};

/** When tasks began and ended, to the millisecond: the API tells whole seconds. */
function taskTimes(model: ProxmoxModel): object[] {
  return model.cluster.state.nodes.flatMap(({ tasks }) => {
    return tasks.map(({ type, id, startMs, endMs }) => ({ type, id, startMs, endMs }));
  });
}

/** Storages, a user with tokens, access lists and images, as a list of them says. */
function buildFixture(model: ProxmoxModel, fixture: Body): object {
  const { cluster } = model;
  const { state } = cluster;
  for (const each of listOf(fixture["storages"])) state.storages.push(storageOf(each));
  const user = bodyOf(fixture["user"]);
  const userid = text(user["userid"]);
  const secrets: Record<string, string> = {};
  const tokens = Object.entries(bodyOf(fixture["tokens"])).map(([name, given]) => {
    const { tokenid, privsep } = bodyOf(given);
    const token = {
      tokenid: text(tokenid),
      secret: cluster.random.uuid(),
      privsep: Number(privsep),
      expire: 0,
    };
    secrets[name] = `${userid}!${token.tokenid}=${token.secret}`;
    return token;
  });
  // The tokens of the fixture do not show up in lists of a scenario's own.
  state.users.push({ userid, isEnabled: true, password: text(user["password"]), tokens });
  for (const each of listOf(fixture["acl"])) {
    const { path, users, roles } = each;
    state.acl.push({
      path: text(path),
      type: "user",
      ugid: text(users),
      roleid: text(roles),
      propagate: 1,
    });
  }
  for (const each of listOf(fixture["imports"])) addImage(model, each);
  return secrets;
}

function addImage(model: ProxmoxModel, image: Body): void {
  const { state, clock, quirks } = model.cluster;
  if (!quirks.importContent) return;
  const storage = state.storages.find((each) => each.storage === text(image["storage"]));
  const backing = `${firstNode(model)}:${storage?.path ?? ""}`;
  const size = Number(image["size"]);
  const volumes = state.volumes[backing] ?? [];
  volumes.push({
    name: `import/${text(image["filename"])}`,
    content: "import",
    format: "qcow2",
    sizeBytes: size,
    usedBytes: size,
    virtualBytes: Number(image["virtualSize"]),
    createdMs: clock.nowMs(),
    sha256: text(image["sha256"]),
    data: text(image["filename"]),
  });
  state.volumes[backing] = volumes;
}

function storageOf(given: Body): StorageConfig {
  const { storage, type, path, content } = given;
  return { storage: text(storage), type: text(type), path: text(path), content: text(content) };
}

function firstNode(model: ProxmoxModel): string {
  return model.cluster.state.nodes[0]?.name ?? "";
}

function text(value: unknown): string {
  return typeof value === "string" || typeof value === "number" ? String(value) : "";
}

function bodyOf(value: unknown): Body {
  return typeof value === "object" && value !== null ? { ...value } : {};
}

function listOf(value: unknown): Body[] {
  return Array.isArray(value) ? value.map(bodyOf) : [];
}
