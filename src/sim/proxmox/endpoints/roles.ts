import { builtInRoles } from "../access/roles.ts";
import { type Call, type Endpoint, immediate, isSet } from "../endpoint.ts";
import { parameterError, PveError } from "../errors.ts";
import { splitList } from "../schema/formats.ts";

function listRoles({ cluster }: Call): unknown {
  const rows = (roles: Readonly<Record<string, readonly string[]>>, special: number): object[] =>
    Object.entries(roles).map(([roleid, privileges]) => {
      return { roleid, privs: [...privileges].sort().join(","), special };
    });
  return [...rows(builtInRoles(cluster.state.release), 1), ...rows(cluster.state.roles, 0)];
}

function readRole({ cluster, parameters }: Call): unknown {
  const { roleid = "" } = parameters;
  const privileges = cluster.rights.rolePrivileges(roleid);
  if (privileges === undefined) throw new PveError(`role '${roleid}' does not exist`);
  return Object.fromEntries(privileges.map((each) => [each, 1]));
}

function createRole(call: Call): unknown {
  const { cluster, parameters } = call;
  const { roleid = "", privs = "" } = parameters;
  // The names of the project's own roles are kept free since release 8.
  if (/^PVE/i.test(roleid) && cluster.state.release !== "7.4") {
    const text = "cannot use role ID starting with the (case-insensitive) 'PVE' namespace";
    throw parameterError({ roleid: text });
  }
  const failed = "create role failed: ";
  if (cluster.rights.rolePrivileges(roleid) !== undefined) {
    throw new PveError(`${failed}role '${roleid}' already exists`);
  }
  cluster.state.roles[roleid] = knownPrivileges(call, privs, failed);
  return null;
}

function changeRole(call: Call): unknown {
  const { cluster, parameters } = call;
  const { privs = "", append } = parameters;
  const failed = "update role failed: ";
  const { roleid, privileges } = ownRole(call, { verb: "modified", failed });
  const added = knownPrivileges(call, privs, failed);
  cluster.state.roles[roleid] = isSet(append) ? [...new Set([...privileges, ...added])] : added;
  return null;
}

/** Entries of access lists that name it are not read again. */
function deleteRole(call: Call): unknown {
  const { state } = call.cluster;
  const { roleid } = ownRole(call, { verb: "deleted", failed: "delete role failed: " });
  Reflect.deleteProperty(state.roles, roleid);
  state.acl = state.acl.filter((entry) => entry.roleid !== roleid);
  return null;
}

function ownRole(
  { cluster, parameters }: Call,
  { verb, failed }: { readonly verb: string; readonly failed: string },
): { roleid: string; privileges: readonly string[] } {
  const { roleid = "" } = parameters;
  if (builtInRoles(cluster.state.release)[roleid] !== undefined) {
    throw new PveError(`auto-generated role '${roleid}' cannot be ${verb}`);
  }
  const privileges = cluster.state.roles[roleid];
  if (privileges === undefined) throw new PveError(`${failed}role '${roleid}' does not exist`);
  return { roleid, privileges };
}

function knownPrivileges({ cluster }: Call, text: string, failed: string): string[] {
  const known = builtInRoles(cluster.state.release)["Administrator"] ?? [];
  const asked = [...new Set(splitList(text))];
  const unknown = asked.find((each) => !known.includes(each));
  if (unknown !== undefined) throw new PveError(`${failed}invalid privilege '${unknown}'`);
  return asked;
}

export const roleEndpoints: Readonly<Record<string, Endpoint>> = {
  "GET /access/roles": immediate(listRoles),
  "POST /access/roles": immediate(createRole),
  "GET /access/roles/{roleid}": immediate(readRole),
  "PUT /access/roles/{roleid}": immediate(changeRole),
  "DELETE /access/roles/{roleid}": immediate(deleteRole),
};
