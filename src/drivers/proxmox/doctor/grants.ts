import type { Finding } from "../../../hypervisor/index.ts";
import { isSupported, newestKnown, type Release } from "../release.ts";
import {
  lackedRights,
  type NeededRight,
  neededRights,
  optionalRights,
  spareRights,
} from "../rights.ts";

/** The role that the commands make. */
const role = "Berth";

/** What is known when commands are written. */
export interface Grant {
  /** `user@realm!name`. */
  readonly tokenId: string;
  readonly release: Release;
  /** Whether the cluster has a role of our name already, with whatever privileges. */
  readonly hasRole: boolean;
}

/** Everything for a new token: role, user, token, access. The secret is printed by the third. */
export function newTokenCommands(tokenId: string, release = newestKnown): string[] {
  const { user, name } = partsOf(tokenId);
  return [
    roleCommand(release, false),
    `pveum user add ${user}`,
    `pveum user token add ${user} ${name} --privsep 1`,
    accessCommand(tokenId),
  ];
}

/** What the words of a release that is older than the newest have to leave out. */
export function olderReleaseNotes(): string[] {
  const newest = privilegesFor(newestKnown);
  const older = [
    { name: "8.4", release: { text: "8.4", major: 8, minor: 4 } },
    { name: "8.0 to 8.3", release: { text: "8.3", major: 8, minor: 3 } },
    { name: "7.2 to 7.4", release: { text: "7.4", major: 7, minor: 4 } },
  ];
  return older.flatMap(({ name, release }) => {
    const known = privilegesFor(release);
    const without = newest.filter((privilege) => !known.includes(privilege));
    const instead = known.filter((privilege) => !newest.includes(privilege));
    if (without.length + instead.length === 0) return [];
    const more = instead.length === 0 ? "" : `, and add ${instead.join(" ")}`;
    return [`on Proxmox VE ${name} leave out ${without.join(" ")}${more}`];
  });
}

/** The privileges of the role on a release, each once. No release takes a word it does not know. */
function privilegesFor(release: Release): string[] {
  return [...new Set(neededRights(release).map(({ privilege }) => privilege))];
}

/** What the token may do, against what Berth does. Pure. */
export function judgeRights(permissions: unknown, grant: Grant): Finding[] {
  const { release } = grant;
  if (!isSupported(release)) return [];
  const lacked = lackedRights(permissions, release);
  const spare = spareRights(permissions, release).filter((privilege) => {
    return sovereign.has(privilege) || !isOptional(privilege, release);
  });
  const tooMany = spare.length === 0 ? [] : [extra(spare)];
  if (lacked.length > 0) return [tooFew(lacked, grant), ...tooMany];
  if (tooMany.length > 0) return tooMany.map((finding) => ({ ...finding, ...narrowing(grant) }));
  const further = lackedRights(permissions, release, optionalRights(release));
  const message = `the token may do all that Berth always needs${wouldNeed(further)}`;
  return [{ check: "Rights", level: "ok", message }];
}

function isOptional(privilege: string, release: Release): boolean {
  return optionalRights(release).some((right) => right.privilege === privilege);
}

/** Said and not complained about: who does not declare pools need not grant them. */
function wouldNeed(further: readonly NeededRight[]): string {
  if (further.length === 0) return "";
  const parts = further.map(({ privilege, reason }) => `${privilege} to ${reason}`);
  return `; it would need ${parts.join(", ")}`;
}

function tooFew(lacked: readonly NeededRight[], grant: Grant): Finding {
  const paths = [...new Set(lacked.map(({ path }) => path))];
  const parts = paths.map((path) => {
    const here = lacked.filter((right) => right.path === path);
    return `${here.map(({ privilege }) => privilege).join(", ")} on ${path}`;
  });
  return {
    check: "Rights",
    level: "problem",
    message: `the token ${grant.tokenId} lacks ${parts.join("; ")}`,
    remedy: `On a node, as root (the role is exactly what Proxmox VE ${grant.release.text} needs):`,
    commands: [roleCommand(grant.release, grant.hasRole), accessCommand(grant.tokenId)],
  };
}

/** With these, whoever has the token has the cluster. */
const sovereign = new Set(["Permissions.Modify", "Sys.Modify", "Sys.Console", "User.Modify"]);

/** As many as a person reads. */
const namedMax = 8;

function extra(spare: readonly string[]): Finding {
  const worst = spare.filter((privilege) => sovereign.has(privilege));
  const named = [...worst, ...spare.filter((each) => !sovereign.has(each))].slice(0, namedMax);
  const others = spare.length - named.length;
  const list = `${named.join(", ")}${others === 0 ? "" : ` and ${others} others`}`;
  const danger =
    worst.length === 0 ? "" : `. With ${worst.join(", ")} whoever has it rules the whole cluster`;
  const message = `the token may do more than Berth always needs: ${list}${danger}`;
  return { check: "Rights", level: "warning", message };
}

/**
 * A separated token has what both it and its user have: so the role of the token alone decides,
 * whatever else the user may do. The access comes first, so that there is no moment without it.
 */
function narrowing({ tokenId, release, hasRole }: Grant): Pick<Finding, "remedy" | "commands"> {
  const { user, name } = partsOf(tokenId);
  return {
    remedy: "Let it have its own role only. On a node, as root:",
    commands: [
      roleCommand(release, hasRole),
      accessCommand(tokenId),
      `pveum user token modify ${user} ${name} --privsep 1`,
    ],
  };
}

function roleCommand(release: Release, hasRole: boolean): string {
  const verb = hasRole ? "modify" : "add";
  return `pveum role ${verb} ${role} --privs "${privilegesFor(release).join(" ")}"`;
}

/** For the user as well: a separated token never has more than its user. */
function accessCommand(tokenId: string): string {
  const { user } = partsOf(tokenId);
  // root@pam has all rights by itself, and a list of access cannot name it.
  const users = user === "root@pam" ? "" : `--users ${user} `;
  // In single quotes, because shells see a command of history behind the exclamation mark.
  return `pveum acl modify / ${users}--tokens '${tokenId}' --roles ${role}`;
}

function partsOf(tokenId: string): { user: string; name: string } {
  const at = tokenId.indexOf("!");
  return at < 0
    ? { user: tokenId, name: "berth" }
    : { user: tokenId.slice(0, at), name: tokenId.slice(at + 1) };
}

/** Whether the list of roles has ours. */
export function hasBerthRole(roles: readonly { readonly [key: string]: unknown }[]): boolean {
  return roles.some((row) => row["roleid"] === role);
}
