import { type Call, type Endpoint, immediate } from "../endpoint.ts";
import { PveError } from "../errors.ts";
import type { GroupState } from "../state.ts";

const auditors = { privileges: ["User.Modify", "Sys.Audit", "Group.Allocate"], isAny: true };

function listGroups({ cluster, caller }: Call): unknown {
  return (cluster.state.groups ?? [])
    .filter(({ groupid }) => cluster.rights.may(caller, `/access/groups/${groupid}`, auditors))
    .map(({ groupid, users, ...rest }) => ({
      groupid,
      users: users.toSorted().join(","),
      ...rest,
    }));
}

function createGroup({ cluster, parameters }: Call): unknown {
  const { groupid = "", comment } = parameters;
  cluster.state.groups ??= [];
  const { groups } = cluster.state;
  if (groups.some((each) => each.groupid === groupid)) {
    throw new PveError(`create group failed: group '${groupid}' already exists`);
  }
  groups.push({
    groupid,
    users: [],
    ...(comment === undefined || comment === "" ? {} : { comment }),
  });
  return null;
}

function readGroup(call: Call): unknown {
  const { users, comment } = groupOf(call);
  return { members: users, ...(comment === undefined ? {} : { comment }) };
}

function changeGroup(call: Call): unknown {
  const group = groupOf(call, "update group failed: ");
  const { comment } = call.parameters;
  if (comment !== undefined) group.comment = comment;
  // An empty text is not there when the file is read again.
  if (group.comment === "") delete group.comment;
  return null;
}

/** What access lists grant to it goes with it. */
function deleteGroup(call: Call): unknown {
  const { state } = call.cluster;
  const group = groupOf(call, "delete group failed: ");
  state.groups = (state.groups ?? []).filter((each) => each !== group);
  state.acl = state.acl.filter(({ type, ugid }) => type !== "group" || ugid !== group.groupid);
  return null;
}

function groupOf({ cluster, parameters }: Call, failed = ""): GroupState {
  const { groupid = "" } = parameters;
  const group = cluster.state.groups?.find((each) => each.groupid === groupid);
  if (group === undefined) throw new PveError(`${failed}group '${groupid}' does not exist`);
  return group;
}

export const groupEndpoints: Readonly<Record<string, Endpoint>> = {
  "GET /access/groups": immediate(listGroups),
  "POST /access/groups": immediate(createGroup),
  "GET /access/groups/{groupid}": immediate(readGroup),
  "PUT /access/groups/{groupid}": immediate(changeGroup),
  "DELETE /access/groups/{groupid}": immediate(deleteGroup),
};
