import { VirtualClock } from "../../kernel/virtual-clock.ts";
import { seededRandom } from "../seeded-random.ts";
import { ProxmoxModel } from "./model.ts";
import type { Release } from "./release.ts";
import { smallCluster, tokenName, tokenUser } from "./world.ts";

const tokenSecret = "00000000-0000-4000-8000-000000000001";
const password = "secret";

/** A reply, with its body read. */
export interface Reply {
  readonly status: number;
  readonly reason: string;
  readonly data: unknown;
}

export type Sent = Readonly<Record<string, string | number>>;

/** A simulated cluster of three nodes on a virtual clock, and short words to talk to it. */
export class Stage {
  readonly clock = new VirtualClock();
  readonly random = seededRandom(7);
  model: ProxmoxModel;

  constructor(release: Release = "9.2") {
    const { clock, random } = this;
    const nodes = ["pve1", "pve2", "pve3"];
    const state = smallCluster({ release, nodes, clock, random, password, tokenSecret });
    this.model = new ProxmoxModel({ state, clock, random });
  }

  /** Saves and loads, as after the power of the machine failed that runs the simulator. */
  reload(): void {
    const { clock, random } = this;
    this.model = ProxmoxModel.load(this.model.save(), { clock, random });
  }

  /** One call with Berth's token; the clock runs until it is answered. */
  async call(method: string, path: string, params: Sent = {}): Promise<Reply> {
    return await this.settle(this.begin(method, path, params));
  }

  /**
   * One call that is not waited for. The parameter "via" is the node that is asked, "as" another
   * token than Berth's, with its secret.
   */
  async begin(
    method: string,
    path: string,
    { via = "pve1", as: token = `${tokenUser}!${tokenName}=${tokenSecret}`, ...params }: Sent = {},
  ): Promise<Reply> {
    const headers = { authorization: `PVEAPIToken=${token}` };
    return await this.#send({ method, path, headers, via: String(via) }, params);
  }

  /** One call of the administrator, who has logged in with a password. */
  async rootCall(method: string, path: string, params: Sent = {}): Promise<Reply> {
    const login = { username: "root@pam", password };
    const asked = { method: "POST", path: "/access/ticket", headers: {}, via: "pve1" };
    const { ticket, CSRFPreventionToken: csrf } = membersOf(
      (await this.settle(this.#send(asked, login))).data,
    );
    const headers = {
      cookie: `PVEAuthCookie=${encodeURIComponent(String(ticket))}`,
      csrfpreventiontoken: String(csrf),
    };
    return await this.settle(this.#send({ method, path, headers, via: "pve1" }, params));
  }

  async #send(
    { method, path, headers, via }: { method: string; path: string; headers: object; via: string },
    params: Sent,
  ): Promise<Reply> {
    const form = Object.entries(params)
      .map(([name, value]) => `${name}=${encodeURIComponent(value)}`)
      .join("&");
    const isQuery = method === "GET" || method === "DELETE";
    const { status, reason, body } = await this.model.send({
      method,
      path: `/api2/json${path}${isQuery && form !== "" ? `?${form}` : ""}`,
      headers: { ...headers, "content-type": "application/x-www-form-urlencoded" },
      ...(isQuery ? {} : { body: form }),
      via,
    });
    const read = membersOf(body === "" ? {} : JSON.parse(body));
    return { status, reason, data: read["data"] };
  }

  /** Lets time pass until the promise is settled. */
  async settle<T>(work: Promise<T>): Promise<T> {
    let isOver = false;
    const over = (): void => void (isOver = true);
    work.then(over, over);
    for (let turns = 0; turns < 20_000; turns++) {
      for (let ticks = 0; ticks < 20; ticks++) await Promise.resolve();
      if (isOver) return await work;
      this.clock.advance(this.clock.nextInMs() ?? 0);
    }
    throw new Error("it never ends");
  }

  /** How a task ended; time passes until it has. */
  async taskEnd(upid: unknown): Promise<string> {
    const node = String(upid).split(":")[1] ?? "";
    for (let turns = 0; turns < 5_000; turns++) {
      const { data } = await this.call("GET", `/nodes/${node}/tasks/${String(upid)}/status`);
      const { status, exitstatus } = membersOf(data);
      if (status === "stopped") return String(exitstatus);
      this.clock.advance(50);
    }
    throw new Error("the task never ends");
  }

  /** A call whose task is waited for: the reason of a refusal, or how the task ended. */
  async does(method: string, path: string, params: Sent = {}): Promise<string> {
    const reply = await this.call(method, path, params);
    if (reply.status !== 200) return `${reply.status} ${reply.reason}`;
    return typeof reply.data === "string" ? await this.taskEnd(reply.data) : "200 OK";
  }

  async config(vmid: number, node = "pve1"): Promise<Readonly<Record<string, unknown>>> {
    const { data } = await this.call("GET", `/nodes/${node}/qemu/${vmid}/config`);
    return membersOf(data);
  }

  /** The ids of the volumes of a guest on a storage. */
  async volumes(vmid: number, storage = "local", node = "pve1"): Promise<string[]> {
    const path = `/nodes/${node}/storage/${storage}/content`;
    const { data } = await this.call("GET", path, { vmid, content: "images" });
    return Array.isArray(data) ? data.map((row: { volid: string }) => row.volid) : [];
  }
}

/** The members of an object; none of anything else. */
export function membersOf(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null ? { ...value } : {};
}
