import { parse } from "yaml";
import { isJsonObject, type Json, type JsonObject } from "../kernel/json.ts";
import { limits } from "../kernel/limits.ts";

/** Where a server is and how to be let in: one context of a kubeconfig. */
export interface Connection {
  /** "https://127.0.0.1:6443", possibly with a path. */
  readonly server: string;
  /** PEM. Absent: the authorities that the machine trusts. */
  readonly ca?: string;
  readonly token?: string;
  /** The token as it is by now, where it comes from a file. */
  readonly currentToken?: () => string;
  /** PEM, both or none. */
  readonly certificate?: string;
  readonly key?: string;
  /** The name that the server's certificate must have, if not that of the URL. */
  readonly tlsServerName?: string;
  /** The server's certificate is not checked at all. */
  readonly insecure?: boolean;
  /** The namespace of the context. */
  readonly namespace?: string;
}

export interface KubeconfigOptions {
  /** Absent: the current context. */
  readonly context?: string;
  /** Reads a file that the kubeconfig names. Absent: such a kubeconfig is refused. */
  readonly readFile?: (path: string) => string;
}

/** A kubeconfig that cannot be used, and why. */
export class KubeconfigError extends Error {
  readonly code = "InvalidKubeconfig";

  constructor(message: string, options?: ErrorOptions) {
    super(`kubeconfig: ${message}`, options);
    this.name = "KubeconfigError";
  }
}

/** Reads one context of a kubeconfig. Throws a KubeconfigError; never shows a secret. */
export function loadKubeconfig(text: string, options: KubeconfigOptions = {}): Connection {
  const config = parseConfig(text);
  const contextName = options.context ?? stringOf(config, "current-context");
  if (contextName === undefined) throw new KubeconfigError("no current-context is set");
  const context = named(config, { list: "contexts", member: "context", name: contextName });
  const cluster = named(config, {
    list: "clusters",
    member: "cluster",
    name: need(context, "cluster"),
  });
  const userName = stringOf(context, "user");
  const user = userName ? named(config, { list: "users", member: "user", name: userName }) : {};
  const server = need(cluster, "server");
  if (!URL.canParse(server)) throw new KubeconfigError(`"${server}" is not a URL`);
  const token = stringOf(user, "token");
  const currentToken = token === undefined ? tokenFileOf(user, options) : undefined;
  return checkedConnection(
    {
      server,
      ca: content(cluster, "certificate-authority", options),
      token: token ?? currentToken?.(),
      currentToken,
      certificate: content(user, "client-certificate", options),
      key: content(user, "client-key", options),
      tlsServerName: stringOf(cluster, "tls-server-name"),
      insecure: cluster["insecure-skip-tls-verify"] === true ? true : undefined,
      namespace: stringOf(context, "namespace"),
    },
    user,
  );
}

function parseConfig(text: string): JsonObject {
  let config: unknown;
  try {
    config = parse(text, { maxAliasCount: limits.yamlAliases });
  } catch (cause) {
    throw new KubeconfigError("it is not YAML", { cause });
  }
  if (isJsonObject(config)) return config;
  throw new KubeconfigError("it is not a map");
}

function named(
  config: JsonObject,
  { list, member, name }: { list: string; member: string; name: string },
): JsonObject {
  const entries = config[list];
  const found = Array.isArray(entries)
    ? entries.filter(isJsonObject).find((entry) => entry["name"] === name)
    : undefined;
  const value = found?.[member];
  if (isJsonObject(value)) return value;
  throw new KubeconfigError(`there is no ${member} named "${name}"`);
}

/** The PEM of `x-data`, or of the file that `x` names. */
function content(
  holder: JsonObject,
  member: string,
  { readFile }: KubeconfigOptions,
): string | undefined {
  const data = stringOf(holder, `${member}-data`);
  if (data !== undefined) return Buffer.from(data, "base64").toString("utf8");
  return fileOf(holder, member, readFile);
}

/**
 * A token in a file is one that expires: whoever gave it writes it anew before that, as a Pod's is
 * every hour. So it is read at each use; while it cannot be read, the last one has to do.
 */
function tokenFileOf(
  user: JsonObject,
  { readFile }: KubeconfigOptions,
): (() => string) | undefined {
  let last = fileOf(user, "tokenFile", readFile)?.trim();
  if (last === undefined) return undefined;
  return () => {
    try {
      last = fileOf(user, "tokenFile", readFile)?.trim() || last;
    } catch (error) {
      if (!(error instanceof KubeconfigError)) throw error;
    }
    return last ?? "";
  };
}

function fileOf(
  holder: JsonObject,
  member: string,
  readFile: KubeconfigOptions["readFile"],
): string | undefined {
  const path = stringOf(holder, member);
  if (path === undefined) return undefined;
  if (readFile === undefined)
    throw new KubeconfigError(`${member} names a file, which is not read`);
  try {
    return readFile(path);
  } catch (cause) {
    throw new KubeconfigError(`${member}: ${path} cannot be read`, { cause });
  }
}

function stringOf(holder: JsonObject, member: string): string | undefined {
  const value: Json | undefined = holder[member];
  return typeof value === "string" && value !== "" ? value : undefined;
}

function need(holder: JsonObject, member: string): string {
  const value = stringOf(holder, member);
  if (value === undefined) throw new KubeconfigError(`${member} is missing`);
  return value;
}

type Loose = { readonly [Member in keyof Connection]: Connection[Member] | undefined };

/** Refuses ways to be let in that are not known here, rather than coming as nobody. */
function checkedConnection(connection: Loose & { server: string }, user: JsonObject): Connection {
  for (const member of ["exec", "auth-provider", "username"]) {
    if (user[member] === undefined) continue;
    if (connection.token !== undefined || connection.certificate !== undefined) continue;
    throw new KubeconfigError(`users with "${member}" are not supported`);
  }
  if ((connection.certificate === undefined) !== (connection.key === undefined)) {
    throw new KubeconfigError("client-certificate and client-key belong together");
  }
  const entries = Object.entries(connection).filter(([, value]) => value !== undefined);
  return { ...Object.fromEntries(entries), server: connection.server };
}
