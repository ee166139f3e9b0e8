import { type ChildProcess, spawn } from "node:child_process";
import { request } from "node:https";
import { join } from "node:path";
import { repository, running } from "./berth.ts";

/** A real `berth sim proxmox` in a process of its own. */
export interface SimulatorProcess {
  readonly url: string;
  readonly tokenId: string;
  readonly tokenSecret: string;
  /** The administrator, with his realm. */
  readonly user: string;
  readonly password: string;
  readonly fingerprint: string;
  /** PEM of the cluster's root certificate. */
  readonly ca: string;
  /** GET of its API, as the token. */
  // oxlint-disable-next-line typescript/no-explicit-any -- tests read arbitrary JSON bodies
  get(path: string): Promise<any>;
  /** A write to its API, as the token: what a stranger does, or a person. */
  // oxlint-disable-next-line typescript/no-explicit-any -- tests read arbitrary JSON bodies
  write(method: "POST" | "PUT" | "DELETE", path: string, params?: Params): Promise<any>;
  /** One of the test hooks under /_sim/. */
  // oxlint-disable-next-line typescript/no-explicit-any -- tests read arbitrary JSON bodies
  hook(action: string, body?: object): Promise<any>;
  stop(): Promise<void>;
}

type Params = Readonly<Record<string, string>>;

export async function startSimulatorProcess(
  version = "9.2",
  args: readonly string[] = [],
  env: Readonly<Record<string, string>> = {},
): Promise<SimulatorProcess> {
  const program = [join(repository, "bin", "berth"), "sim", "proxmox", "--print", "json"];
  const child = spawn(process.execPath, [...program, "--version", version, ...args], {
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, ...env },
  });
  running.add(child);
  const about = JSON.parse(await firstLine(child));
  return {
    url: about.url,
    tokenId: about.tokenId,
    tokenSecret: about.tokenSecret,
    user: about.user,
    password: about.password,
    fingerprint: about.fingerprint,
    ca: about.ca,
    get: async (path) => (await ask(about, { path: `/api2/json${path}` })).data,
    write: async (method, path, params = {}) => {
      const query = new URLSearchParams(params).toString();
      const isBody = method !== "DELETE";
      const where = `/api2/json${path}${isBody || query === "" ? "" : `?${query}`}`;
      return (await ask(about, { method, path: where, body: isBody ? query : "" })).data;
    },
    hook: (action, body = {}) => {
      return ask(about, { method: "POST", path: `/_sim/${action}`, body: JSON.stringify(body) });
    },
    stop: () =>
      new Promise((resolve) => {
        child.once("close", () => {
          running.delete(child);
          resolve();
        });
        child.kill("SIGTERM");
      }),
  };
}

function firstLine(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    let printed = "";
    child.stdout?.on("data", (chunk: Buffer) => {
      printed += chunk.toString();
      const end = printed.indexOf("\n");
      if (end >= 0) resolve(printed.slice(0, end));
    });
    child.once("close", () => reject(new Error(`the simulator ended: ${printed}`)));
  });
}

type About = { url: string; tokenId: string; tokenSecret: string; ca: string };

interface Question {
  readonly method?: string;
  readonly path: string;
  readonly body?: string;
}

// oxlint-disable-next-line typescript/no-explicit-any -- tests read arbitrary JSON bodies
function ask(about: About, { method = "GET", path, body = "" }: Question): Promise<any> {
  const authorization = `PVEAPIToken=${about.tokenId}=${about.tokenSecret}`;
  const type = path.startsWith("/_sim/") ? "application/json" : "application/x-www-form-urlencoded";
  const headers = { authorization, ...(body === "" ? {} : { "content-type": type }) };
  return new Promise((resolve, reject) => {
    const url = new URL(path, about.url);
    const sent = request(url, { method, ca: about.ca, headers }, (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("end", () => {
        const text = Buffer.concat(chunks).toString();
        if (response.statusCode === 200) resolve(JSON.parse(text));
        else reject(new Error(`${path}: ${response.statusCode} ${response.statusMessage}`));
      });
    });
    sent.on("error", reject);
    sent.end(body);
  });
}
