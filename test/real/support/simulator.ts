import { type ChildProcess, spawn } from "node:child_process";
import { request } from "node:https";
import { join } from "node:path";
import { repository, running } from "./berth.ts";

/** A real `berth sim proxmox` in a process of its own. */
export interface SimulatorProcess {
  readonly url: string;
  readonly tokenId: string;
  readonly tokenSecret: string;
  readonly fingerprint: string;
  /** GET of its API, as the token. */
  // oxlint-disable-next-line typescript/no-explicit-any -- tests read arbitrary JSON bodies
  get(path: string): Promise<any>;
  stop(): Promise<void>;
}

export async function startSimulatorProcess(version = "9.2"): Promise<SimulatorProcess> {
  const args = [join(repository, "bin", "berth"), "sim", "proxmox", "--print", "json"];
  const child = spawn(process.execPath, [...args, "--version", version], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  running.add(child);
  const about = JSON.parse(await firstLine(child));
  return {
    url: about.url,
    tokenId: about.tokenId,
    tokenSecret: about.tokenSecret,
    fingerprint: about.fingerprint,
    get: (path) => ask(about, path),
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

// oxlint-disable-next-line typescript/no-explicit-any -- tests read arbitrary JSON bodies
function ask(about: About, path: string): Promise<any> {
  const authorization = `PVEAPIToken=${about.tokenId}=${about.tokenSecret}`;
  return new Promise((resolve, reject) => {
    const url = new URL(`/api2/json${path}`, about.url);
    const sent = request(url, { ca: about.ca, headers: { authorization } }, (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("end", () => {
        const text = Buffer.concat(chunks).toString();
        if (response.statusCode === 200) resolve(JSON.parse(text).data);
        else reject(new Error(`${path}: ${response.statusCode} ${response.statusMessage}`));
      });
    });
    sent.on("error", reject);
    sent.end();
  });
}
