import { createHash } from "node:crypto";
import type { Cluster } from "../cluster.ts";
import { type Call, type Endpoint, immediate, isSet } from "../endpoint.ts";
import { parameterError, prefixed, PveError } from "../errors.ts";
import { splitList } from "../schema/formats.ts";
import type { HaResource } from "../state.ts";
import { haStateOf, wishFor } from "../vm/ha.ts";

/** "100" and "vm:100" are the same resource. */
function sidOf({ parameters }: Call): string {
  const { sid = "" } = parameters;
  return sid.includes(":") ? sid : `vm:${sid}`;
}

function resourceOf(call: Call): HaResource {
  const sid = sidOf(call);
  const found = call.cluster.state.ha[sid];
  if (found === undefined) throw new PveError(`no such resource '${sid}'`);
  return found;
}

/** What is configured; what the manager is about to do is not part of it. */
function resourceRow({ cluster }: Call, sid: string, resource: HaResource): object {
  const { state, group, comment, max_restart, max_relocate, failback } = resource;
  const options = { group, comment, max_restart, max_relocate, failback };
  const given = Object.entries(options).filter(([, value]) => value !== undefined);
  const digest = createHash("sha1").update(JSON.stringify(cluster.state.ha)).digest("hex");
  return { sid, type: "vm", state, ...Object.fromEntries(given), digest };
}

function createResource(call: Call): unknown {
  const { cluster, parameters } = call;
  cluster.demandQuorum();
  const sid = sidOf(call);
  demandGroup(call);
  const vmid = Number(sid.slice("vm:".length));
  if (cluster.nodeOfGuest(vmid) === undefined) {
    throw new PveError(`resource '${sid}' does not exist in cluster`);
  }
  if (cluster.state.ha[sid] !== undefined) {
    const error = new PveError(`resource ID '${sid}' already defined`);
    throw prefixed("create resource failed: ", error);
  }
  const resource: HaResource = { state: "started" };
  cluster.state.ha[sid] = resource;
  setOptions(resource, parameters);
  wishFor(cluster, resource, { state: stateOf(parameters["state"] ?? "started") });
  return null;
}

/** "enabled" is an old word for "started". */
function stateOf(text: string): string {
  return text === "enabled" ? "started" : text;
}

function setOptions(resource: HaResource, parameters: Call["parameters"]): void {
  const { group, comment, max_restart, max_relocate, failback } = parameters;
  if (group !== undefined) resource.group = group;
  if (comment !== undefined) resource.comment = comment;
  if (max_restart !== undefined) resource.max_restart = Number(max_restart);
  if (max_relocate !== undefined) resource.max_relocate = Number(max_relocate);
  if (failback !== undefined) resource.failback = isSet(failback) ? 1 : 0;
}

function demandGroup({ cluster, parameters }: Call): void {
  const { group } = parameters;
  if (group === undefined) return;
  if (hasRules(cluster)) {
    throw new PveError("invalid parameter 'group': ha groups have been migrated to rules");
  }
  if (cluster.state.haGroups?.[group] === undefined) {
    throw new PveError(`HA group '${group}' does not exist`);
  }
}

/** Release 9 has rules where there were groups. */
function hasRules(cluster: Cluster): boolean {
  return cluster.state.release === "9.2";
}

function changeResource(call: Call): unknown {
  const { cluster, parameters } = call;
  const resource = resourceOf(call);
  demandGroup(call);
  for (const name of splitList(parameters["delete"] ?? "")) {
    if (name === "state") resource.state = "started";
    else Reflect.deleteProperty(resource, name);
  }
  setOptions(resource, parameters);
  const { state } = parameters;
  if (state !== undefined) wishFor(cluster, resource, { state: stateOf(state) });
  return null;
}

function deleteResource(call: Call): unknown {
  const { cluster } = call;
  const sid = sidOf(call);
  if (cluster.state.ha[sid] === undefined) {
    throw new PveError(`cannot delete service '${sid}', not HA managed!`);
  }
  Reflect.deleteProperty(cluster.state.ha, sid);
  return null;
}

/** The move is queued, and that is all that is answered. */
function moveResource(call: Call): unknown {
  const { cluster, parameters } = call;
  const sid = sidOf(call);
  const found = cluster.state.ha[sid];
  if (found === undefined) throw new PveError(`resource '${sid}' is not HA managed`);
  const vmid = Number(sid.slice("vm:".length));
  if (haStateOf(cluster, vmid) === "error") {
    throw new PveError(`service '${sid}' in error state, must be disabled and fixed first`);
  }
  const { node = "" } = parameters;
  wishFor(cluster, found, { target: node });
  return hasRules(cluster) ? { sid, "requested-node": node } : null;
}

function currentStatus(call: Call): unknown {
  const { cluster, node } = call;
  const master = cluster.state.nodes.find(({ isOnline }) => isOnline)?.name ?? node;
  const isQuorate = cluster.isQuorate();
  const status = isQuorate ? "OK" : `No quorum on node '${node}'!`;
  const quorum = { id: "quorum", type: "quorum", node, status, quorate: isQuorate ? 1 : 0 };
  const timestamp = Math.floor(cluster.clock.nowMs() / 1000);
  const managed = Object.entries(cluster.state.ha).sort(([a], [b]) => (a < b ? -1 : 1));
  const heads =
    managed.length === 0
      ? []
      : [{ id: "master", type: "master", node: master, status: `${master} (active)`, timestamp }];
  return [quorum, ...heads, ...managed.map(([sid, each]) => serviceRow(cluster, sid, each))];
}

function serviceRow(cluster: Cluster, sid: string, resource: HaResource): object {
  const vmid = Number(sid.slice("vm:".length));
  const node = cluster.nodeOfGuest(vmid) ?? "---";
  const state = haStateOf(cluster, vmid) ?? resource.state;
  return {
    id: `service:${sid}`,
    type: "service",
    sid,
    node,
    state,
    crm_state: state,
    request_state: resource.state,
    status: `${sid} (${node}, ${state})`,
  };
}

// Groups, and the rules that replaced them.

type Table = Record<string, Record<string, string>>;

function tableOf(cluster: Cluster, kind: "haGroups" | "haRules"): Table {
  const table = cluster.state[kind] ?? {};
  cluster.state[kind] = table;
  return table;
}

/** Reads and writes of groups; in release 9 each is refused, for there are rules. */
function ofGroups(
  verb: string,
  answer: (call: Call, groups: Table, id: string) => unknown,
): Endpoint {
  return immediate((call) => {
    if (hasRules(call.cluster)) {
      throw new PveError(`cannot ${verb}: ha groups have been migrated to rules`);
    }
    return answer(call, tableOf(call.cluster, "haGroups"), call.parameters["group"] ?? "");
  });
}

function known(table: Table, id: string, what: string): Record<string, string> {
  const found = table[id];
  if (found === undefined) throw new PveError(what);
  return found;
}

function optionsOf({ parameters }: Call, ...left: string[]): Record<string, string> {
  const given = Object.entries(parameters).filter(([name]) => {
    return !["digest", "delete", "type", ...left].includes(name);
  });
  return Object.fromEntries(given);
}

function change(call: Call, entry: Record<string, string>, ...left: string[]): null {
  for (const name of splitList(call.parameters["delete"] ?? "")) {
    Reflect.deleteProperty(entry, name);
  }
  Object.assign(entry, optionsOf(call, ...left));
  return null;
}

function deleteGroup({ cluster }: Call, groups: Table, id: string): unknown {
  const user = Object.entries(cluster.state.ha).find(([, resource]) => resource.group === id);
  if (user !== undefined) {
    const error = new PveError(`ha group is used by service '${user[0]}'`);
    throw prefixed("delete ha group failed: ", error);
  }
  Reflect.deleteProperty(groups, id);
  return null;
}

function createRule(call: Call): unknown {
  const { cluster, parameters } = call;
  const rules = tableOf(cluster, "haRules");
  const { rule = "", type = "", resources, nodes } = parameters;
  const missing = "property is missing and it is not optional";
  if (rule === "") throw parameterError({ rule: missing });
  if (!["node-affinity", "resource-affinity"].includes(type))
    throw parameterError({ type: missing });
  if (resources === undefined) throw parameterError({ resources: missing });
  if (type === "node-affinity" && nodes === undefined) throw parameterError({ nodes: missing });
  const unmanaged = splitList(resources).filter((sid) => cluster.state.ha[sid] === undefined);
  if (unmanaged.length > 0) {
    throw new PveError(`cannot use unmanaged resource(s) ${unmanaged.join(", ")}.`);
  }
  if (rules[rule] !== undefined) throw new PveError(`HA rule '${rule}' already defined`);
  rules[rule] = { type, ...optionsOf(call, "rule") };
  return null;
}

function listRules({ cluster, parameters }: Call): unknown {
  const { type, resource } = parameters;
  return Object.entries(tableOf(cluster, "haRules"))
    .filter(([, rule]) => type === undefined || rule["type"] === type)
    .filter(
      ([, rule]) => resource === undefined || splitList(rule["resources"] ?? "").includes(resource),
    )
    .map(([rule, options]) => ({ rule, ...options }));
}

const ofRules = (answer: (call: Call, id: string) => unknown): Endpoint =>
  immediate((call) => answer(call, call.parameters["rule"] ?? ""));

/** High availability: what is under it, and how it is doing. */
export const haEndpoints: Readonly<Record<string, Endpoint>> = {
  "GET /cluster/ha/resources": immediate((call) =>
    Object.entries(call.cluster.state.ha).map(([sid, each]) => resourceRow(call, sid, each)),
  ),
  "POST /cluster/ha/resources": immediate(createResource),
  "GET /cluster/ha/resources/{sid}": immediate((call) =>
    resourceRow(call, sidOf(call), resourceOf(call)),
  ),
  "PUT /cluster/ha/resources/{sid}": immediate(changeResource),
  "DELETE /cluster/ha/resources/{sid}": immediate(deleteResource),
  "POST /cluster/ha/resources/{sid}/migrate": immediate(moveResource),
  "POST /cluster/ha/resources/{sid}/relocate": immediate(moveResource),
  "GET /cluster/ha/status": immediate(() => [{ name: "current" }, { name: "manager_status" }]),
  "GET /cluster/ha/status/current": immediate(currentStatus),
  "GET /cluster/ha/groups": ofGroups("index groups", (_, groups) =>
    Object.entries(groups).map(([id, each]) => ({ group: id, type: "group", ...each })),
  ),
  "POST /cluster/ha/groups": ofGroups("create group", (call, groups, id) => {
    if (groups[id] !== undefined) {
      const error = new PveError(`ha group ID '${id}' already defined`);
      throw prefixed("create ha group failed: ", error);
    }
    groups[id] = optionsOf(call, "group");
    return null;
  }),
  "GET /cluster/ha/groups/{group}": ofGroups("read group", (_, groups, id) => {
    return { group: id, type: "group", ...known(groups, id, `no such ha group '${id}'`) };
  }),
  "PUT /cluster/ha/groups/{group}": ofGroups("update group", (call, groups, id) =>
    change(call, known(groups, id, `no such ha group '${id}'`), "group"),
  ),
  "DELETE /cluster/ha/groups/{group}": ofGroups("delete group", deleteGroup),
  "GET /cluster/ha/rules": immediate(listRules),
  "POST /cluster/ha/rules": immediate(createRule),
  "GET /cluster/ha/rules/{rule}": ofRules(({ cluster }, id) => {
    const found = known(tableOf(cluster, "haRules"), id, `no such ha rule '${id}'`);
    return { rule: id, ...found };
  }),
  "PUT /cluster/ha/rules/{rule}": ofRules((call, id) => {
    const found = known(tableOf(call.cluster, "haRules"), id, `HA rule '${id}' does not exist`);
    return change(call, found, "rule");
  }),
  "DELETE /cluster/ha/rules/{rule}": ofRules(({ cluster }, id) => {
    Reflect.deleteProperty(tableOf(cluster, "haRules"), id);
    return null;
  }),
};
