import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { temporaryFolder } from "../support/berth.ts";
import { type SimulatorProcess, startSimulatorProcess } from "../support/simulator.ts";

/** What somebody else's client is let loose on. */
export interface Ground {
  readonly simulator: SimulatorProcess;
  readonly release: Release;
  /** A folder of the test's own. */
  readonly folder: string;
  /** The cluster's root certificate, in that folder: clients that can check it do. */
  readonly caFile: string;
  /** The image that every release but 7.4 comes with, as a disk of a VM is made from it. */
  readonly image: string;
}

export type Release = "7.4" | "8.4" | "9.2";
export const releases: readonly Release[] = ["7.4", "8.4", "9.2"];

/** A simulated cluster that ends with the test. */
export async function prepareGround(t: TestContext, release: Release): Promise<Ground> {
  const folder = temporaryFolder("client");
  const simulator = await startSimulatorProcess(release);
  t.after(async () => {
    await simulator.stop();
    folder.remove();
  });
  const caFile = join(folder.path, "ca.pem");
  writeFileSync(caFile, simulator.ca);
  const image = "local:import/debian-12-generic-amd64.qcow2";
  return { simulator, release, folder: folder.path, caFile, image };
}

/** What a guest left behind on the storages of its node: its own volumes, by their ids. */
export async function volumesOf(
  { simulator }: Ground,
  vmid: number,
  node = "pve1",
): Promise<string[]> {
  const storages = await simulator.get(`/nodes/${node}/storage?content=images`);
  const rows = await Promise.all(
    storages.map(({ storage }: { storage: string }) =>
      simulator.get(`/nodes/${node}/storage/${storage}/content?content=images&vmid=${vmid}`),
    ),
  );
  return rows.flat().map(({ volid }: { volid: string }) => volid);
}

export async function vmids({ simulator }: Ground): Promise<number[]> {
  const rows = await simulator.get("/cluster/resources?type=vm");
  return rows.map(({ vmid }: { vmid: number }) => vmid);
}

/** Waits until no task runs on a node: a client may be done before what it began is. */
export async function tasksEnded({ simulator }: Ground, node: string): Promise<void> {
  for (let polls = 0; polls < 300; polls++) {
    const running = await simulator.get(`/nodes/${node}/tasks?source=active`);
    if (running.length === 0) return;
    await sleep(100);
  }
  throw new Error(`tasks of ${node} still run after 30 s`);
}

/** A web server with one disk image on it: the header of a qcow2 file, which states its size. */
export async function serveImage(t: TestContext, virtualGib: number): Promise<string> {
  const bytes = Buffer.alloc(512);
  bytes.write("QFI\u00fb", 0, "latin1");
  bytes.writeUInt32BE(3, 4);
  bytes.writeBigUInt64BE(BigInt(virtualGib) * 1024n ** 3n, 24);
  const headers = { "content-type": "application/octet-stream", "content-length": bytes.length };
  const server = createServer(({ method }, response) => {
    response.writeHead(200, headers).end(method === "HEAD" ? undefined : bytes);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => server.close());
  const { port } = server.address() as AddressInfo;
  return `http://127.0.0.1:${port}/cloud.qcow2`;
}
