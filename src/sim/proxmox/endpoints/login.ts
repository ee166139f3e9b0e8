import type { Cluster } from "../cluster.ts";
import type { Call } from "../endpoint.ts";
import { PveError } from "../errors.ts";
import { normalPath } from "../access/rights.ts";
import { splitList } from "../schema/formats.ts";
import type { Process } from "../process.ts";
import type { Release } from "../release.ts";

const ticketLifeMs = 2 * 60 * 60 * 1000;

/**
 * POST /access/ticket: a login by password. A ticket that is still good does as a password too:
 * that is how clients renew theirs. With a path and privileges it only tells whether they are held.
 */
export function* login(call: Call): Process<unknown> {
  const { cluster, parameters } = call;
  const { username = "", realm = "", password = "" } = parameters;
  const userid = realm === "" ? username : `${username}@${realm}`;
  yield* cluster.step("login");
  if (!isEnabled(cluster, userid) || !isProven(cluster, userid, password)) throw refused();
  return {
    username: userid,
    ...outcome(call, userid),
    cap: capabilities(cluster, userid),
    ...clusterName(cluster, userid),
  };
}

function outcome({ cluster, parameters }: Call, userid: string): object {
  const { path, privs } = parameters;
  if (path === undefined || privs === undefined) return newTicket(cluster, userid);
  demandHeld(cluster, userid, { path, privs });
  return {};
}

/** Whatever is wrong, the reply is the same: nobody learns which users there are. */
function refused(): PveError {
  return new PveError("authentication failure", 401);
}

function isEnabled(cluster: Cluster, userid: string): boolean {
  const user = cluster.rights.user(userid);
  if (user?.isEnabled !== true) return false;
  const expire = user.expire ?? 0;
  return expire === 0 || expire * 1000 >= cluster.clock.nowMs();
}

function isProven(cluster: Cluster, userid: string, password: string): boolean {
  const nowMs = cluster.clock.nowMs();
  const held = cluster.state.tickets.find(({ ticket, expiresMs }) => {
    return ticket === password && expiresMs > nowMs;
  });
  // root@pam's ticket makes tickets for every user.
  if (held !== undefined) return held.userid === userid || held.userid === "root@pam";
  return cluster.rights.user(userid)?.password === password;
}

function demandHeld(
  cluster: Cluster,
  userid: string,
  { path, privs }: { readonly path: string; readonly privs: string },
): void {
  const normal = normalPath(path);
  const privileges = splitList(privs);
  const caller = { id: userid, userid };
  const isHeld = normal !== undefined && privileges.length > 0;
  if (!isHeld || !cluster.rights.may(caller, normal, { privileges })) throw refused();
}

function newTicket(
  cluster: Cluster,
  userid: string,
): { ticket: string; CSRFPreventionToken: string } {
  const nowMs = cluster.clock.nowMs();
  const time = Math.floor(nowMs / 1000)
    .toString(16)
    .toUpperCase();
  const secret = (): string => Buffer.from(cluster.random.bytes(32)).toString("base64");
  const ticket = `PVE:${userid}:${time}::${secret()}`;
  const csrf = `${time}:${secret()}`;
  const alive = cluster.state.tickets.filter(({ expiresMs }) => expiresMs > nowMs);
  cluster.state.tickets = [...alive, { ticket, csrf, userid, expiresMs: nowMs + ticketLifeMs }];
  return { ticket, CSRFPreventionToken: csrf };
}

const concernsOf74: Readonly<Record<string, RegExp>> = {
  vms: /^(VM\.|Permissions\.Modify)/,
  access: /^((User|Group)\.|Permissions\.Modify)/,
  storage: /^(Datastore\.|Permissions\.Modify)/,
  nodes: /^(Sys\.|Permissions\.Modify)/,
  sdn: /^(SDN\.|Permissions\.Modify)/,
  dc: /^(Sys\.Audit|SDN\.)/,
};

/** Which privileges count for which part of the web interface, by the first part of their path. */
function concernsOf(release: Release): Readonly<Record<string, RegExp>> {
  if (release === "7.4") return concernsOf74;
  return {
    ...concernsOf74,
    dc: /^(Sys\.Audit|Sys\.Modify|SDN\.)/,
    mapping: /^(Mapping\.|Permissions\.Modify)/,
  };
}

/** What the user may do somewhere at all: with it a web interface hides what it need not show. */
function capabilities(cluster: Cluster, userid: string): object {
  const concerns = Object.entries(concernsOf(cluster.state.release));
  const always = ["/", "/nodes", "/access/groups", "/vms", "/storage", "/sdn", "/mapping"];
  const paths = [...new Set([...always, ...cluster.state.acl.map(({ path }) => path)])];
  const held = paths.map((path) => ({
    parts: partsOf(path),
    privileges: cluster.rights.privilegesOf({ id: userid, userid }, path),
  }));
  return Object.fromEntries(
    concerns.map(([name, counts]) => {
      const here = held.filter(({ parts }) => parts.includes(name));
      const privileges = here.flatMap((each) => [...each.privileges]);
      const counted = privileges.filter((each) => counts.test(each)).map((each) => [each, 1]);
      return [name, Object.fromEntries(counted)];
    }),
  );
}

/** A pool holds guests and storages. */
function partsOf(path: string): readonly string[] {
  const first = /^\/(\w+)/.exec(path)?.[1] ?? "dc";
  return first === "pool" ? ["vms", "storage"] : [first];
}

function clusterName({ state, rights }: Cluster, userid: string): { clustername?: string } {
  const isNamed = state.nodes.length > 1;
  const mayKnow = rights.may({ id: userid, userid }, "/", { privileges: ["Sys.Audit"] });
  return isNamed && mayKnow ? { clustername: state.clusterName } : {};
}
