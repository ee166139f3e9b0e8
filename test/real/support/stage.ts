import assert from "node:assert/strict";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Berth, startBerth, temporaryFolder } from "./berth.ts";
import { eventually, pause } from "./eventually.ts";
import { bodyOf, connect, type Http, type Reply } from "./http.ts";
import { api, declareHypervisor, declareImage, machineOf, machines } from "./lab.ts";
import { type SimulatorProcess, startSimulatorProcess } from "./simulator.ts";

/** What a person does to the two machines of a stage. */
export type Phase = "create" | "change" | "delete";

const firstBoot = { cloudInit: { userData: { inline: "#cloud-config\nruncmd: [id]\n" } } };
/** A larger disk, one more, and what needs a restart: effects, and something for the Claim. */
const changed = {
  cpu: { cores: 2 },
  updatePolicy: "Reboot",
  disks: [
    { name: "root", size: "5Gi" },
    { name: "data", size: "1Gi" },
  ],
};
const skewFile = "skew-ms";
const volumesOfOne: Record<Phase, number> = { create: 1, change: 2, delete: 0 };

/** Berth chooses the id of the first, a person that of the second. */
const names = ["first", "second"] as const;
const chosenId = "2000";

/** A cluster of its own, and one installation over all the lives of its process. */
export class Stage {
  readonly simulator: SimulatorProcess;
  readonly folder;
  #skewMs = 0;
  #life: { readonly berth: Berth; readonly http: Http } | undefined;

  constructor(simulator: SimulatorProcess, folder: ReturnType<typeof temporaryFolder>) {
    this.simulator = simulator;
    this.folder = folder;
  }

  static async open(): Promise<Stage> {
    const folder = temporaryFolder("stage");
    const env = { BERTH_CLOCK_SKEW_FILE: join(folder.path, skewFile) };
    return new Stage(await startSimulatorProcess("9.2", [], env), folder);
  }

  /** The clocks of everybody go so much further at once, as if nobody had been there meanwhile. */
  pass(ms: number): void {
    this.#skewMs += ms;
    writeFileSync(join(this.folder.path, skewFile), String(this.#skewMs));
  }

  get data(): string {
    return join(this.folder.path, "data");
  }

  get berth(): Berth {
    assert.ok(this.#life, "it was started");
    return this.#life.berth;
  }

  get http(): Http {
    assert.ok(this.#life, "it was started");
    return this.#life.http;
  }

  /** A new life. With a failpoint it ends there, once `arm` was called. */
  async start(env: Readonly<Record<string, string>> = {}): Promise<void> {
    await this.end();
    rmSync(this.#armed, { force: true });
    const berth = await startBerth({
      data: this.data,
      env: {
        BERTH_FAILPOINT_AFTER: this.#armed,
        BERTH_CLOCK_SKEW_FILE: join(this.folder.path, skewFile),
        BERTH_UPTIME_SKEW_MS: String(this.#skewMs),
        ...env,
      },
    });
    this.#life = { berth, http: connect(berth) };
  }

  arm(): void {
    writeFileSync(this.#armed, "");
  }

  async diedAt(failpoint: string): Promise<void> {
    const { berth } = this;
    const late = new Promise((resolve) => setTimeout(resolve, 45_000, "still alive").unref());
    const end = await Promise.race([berth.exited, late]);
    assert.equal(end, "SIGKILL", `${failpoint} was not reached: ${berth.output()}`);
    assert.match(berth.output(), new RegExp(`killed at the failpoint ${failpoint}\n`));
  }

  /** kill -9, whatever it does. */
  async end(): Promise<void> {
    this.#life?.http.close();
    await this.#life?.berth.kill();
    this.#life = undefined;
  }

  async remove(): Promise<void> {
    await this.end();
    await this.simulator.stop();
    this.folder.remove();
  }

  /** The hypervisor and the image. */
  async prepare(): Promise<void> {
    await declareHypervisor(this.http, "lab", this.simulator);
    await declareImage(this.http, "debian-12", "lab");
  }

  /** What a person asks for. Who asks a dying server asks the next one again. */
  async ask(phase: Phase): Promise<void> {
    const chosen = { externalId: chosenId, ...firstBoot };
    const specs = [{}, chosen];
    for (const [i, name] of names.entries()) {
      const reply = await this.#askFor(phase, machineOf(name, specs[i]), `${machines}/${name}`);
      const isTaken = [200, 201, phase === "create" ? 409 : 404].includes(reply.status);
      assert.ok(isTaken, `${phase} ${name}: ${reply.status} ${reply.text}`);
    }
  }

  async #askFor(phase: Phase, body: object, path: string): Promise<Reply> {
    const type = "application/merge-patch+json";
    switch (phase) {
      case "create":
        return this.http.ask({ method: "POST", path: machines, body });
      case "change":
        return this.http.ask({ method: "PATCH", path, body: { spec: changed }, type });
      case "delete":
        return this.http.ask({ method: "DELETE", path });
    }
  }

  /** Waits until everything is as declared, and holds it against what the cluster has. */
  async settle(phase: Phase, withinMs = 90_000): Promise<void> {
    let shown = "";
    await eventually(
      async () => {
        const items: Listed[] = bodyOf(await this.http.ask({ path: machines })).items;
        shown = JSON.stringify(items.map(({ metadata, status }) => [metadata.name, status]));
        return phase === "delete" ? items.length === 0 : items.length === 2 && items.every(isAsked);
      },
      () => `after ${phase} it is not as declared: ${shown} ${this.berth.output()}`,
      { withinMs },
    );
    await this.compare(phase);
  }

  /** The machines and the volumes of the cluster. */
  async standing(): Promise<{ names: string[]; volumes: string[] }> {
    const { machines: there, volumes } = await inventory(this.simulator);
    return { names: there.toSorted(), volumes: volumes.toSorted() };
  }

  /** A process that could not go on is started again, as a service would be. */
  async goOn(): Promise<void> {
    const gave = await Promise.race([this.berth.exited, pause(500)]);
    if (gave !== undefined) await this.start();
  }

  /** One machine per declaration, and no volume more than they have. */
  async compare(phase: Phase): Promise<void> {
    const { machines: there, volumes, discs } = await inventory(this.simulator);
    assert.deepEqual(there.toSorted(), phase === "delete" ? [] : names, `after ${phase}`);
    assert.equal(volumes.length, 2 * volumesOfOne[phase], `after ${phase}: ${volumes.join()}`);
    if (phase !== "delete") return;
    assert.deepEqual(discs, [], "discs of the first boot");
    const states = (await this.claims()).map(({ spec }) => spec.state);
    assert.deepEqual(
      states,
      ["Quarantined"],
      "the id of the first rests, that of the other is free",
    );
  }

  async claims(): Promise<{ spec: { state: string; identity: string; externalId: string } }[]> {
    return bodyOf(await this.http.ask({ path: `${api}/claims` })).items;
  }

  get #armed(): string {
    return join(this.folder.path, "armed");
  }
}

interface Listed {
  readonly metadata: {
    readonly name: string;
    readonly generation: number;
    readonly deletionTimestamp?: string;
  };
  readonly status?: {
    readonly observedGeneration?: number;
    readonly conditions?: readonly { readonly type: string; readonly status: string }[];
  };
}

/** Ready, and in sync with what was last asked for. */
export function isAsked({ metadata, status }: Listed): boolean {
  if (metadata.deletionTimestamp !== undefined) return false;
  if (status?.observedGeneration !== metadata.generation) return false;
  return ["Ready", "Synced"].every((type) => {
    return status.conditions?.some((one) => one.type === type && one.status === "True");
  });
}

/** What the cluster has, asked of each node: its own list may lag behind by ten seconds. */
async function inventory(
  simulator: SimulatorProcess,
): Promise<{ machines: string[]; volumes: string[]; discs: string[] }> {
  const found = { machines: [] as string[], volumes: [] as string[], discs: [] as string[] };
  for (const node of ["pve1", "pve2", "pve3"]) {
    const rows = await simulator.get(`/nodes/${node}/qemu`);
    // A machine in the making has no name yet: it is told by its number.
    found.machines.push(...rows.map((row: Row) => row.name ?? `unnamed ${row.vmid}`));
    const storage = `/nodes/${node}/storage`;
    const images = await simulator.get(`${storage}/local-zfs/content?content=images`);
    found.volumes.push(...images.map(({ volid }: Row) => volid));
    const discs = await simulator.get(`${storage}/local/content?content=iso`);
    found.discs.push(...discs.map(({ volid }: Row) => volid));
  }
  return found;
}

interface Row {
  readonly name?: string;
  readonly vmid: number;
  readonly volid: string;
}
