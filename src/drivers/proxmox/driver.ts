import type { Clock } from "../../kernel/clock.ts";
import type { Random } from "../../kernel/random.ts";
import { answered } from "../../hypervisor/index.ts";
import type { HypervisorDriver } from "../../hypervisor/index.ts";
import { askGuest } from "./agent.ts";
import { allocating } from "./allocations.ts";
import { changeOf } from "./changes/change-of.ts";
import { ConfigReader } from "./config-reader.ts";
import type { DriverContext, ProxmoxSettings, UnlockAccount } from "./context.ts";
import { advanceEpoch, readEpoch } from "./epoch.ts";
import { fitShape } from "./fit.ts";
import { Glance } from "./glance.ts";
import { findDiscs, findImages } from "./images.ts";
import { readInventory } from "./inventory.ts";
import { findLeftovers } from "./leftovers.ts";
import { observe } from "./observe.ts";
import { NodeClocks } from "./node-clocks.ts";
import { begin } from "./operations/begin.ts";
import { preflight } from "./preflight.ts";
import { prefer, propose } from "./propose.ts";
import { newestKnown } from "./release.ts";
import { surveyAll } from "./survey.ts";
import { readSystem } from "./system.ts";
import { memoryOfTasks } from "./recall.ts";
import { cancelTask, lookAtTask } from "./tasks.ts";
import { PveApi } from "./wire/api.ts";
import { limited } from "./wire/limited.ts";
import type { Send } from "./wire/wire.ts";

export interface ProxmoxOptions {
  readonly send: Send;
  /** The token's id, `user@realm!name`: what proves that a task is ours. Not the secret. */
  readonly tokenId: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly settings?: ProxmoxSettings;
  /** Calls that one node works on at once. */
  readonly callsPerNode?: number;
  /** Absent: no lock is ever cleared. */
  readonly unlock?: UnlockAccount | undefined;
  readonly close?: () => void;
}

const callsPerNodeDefault = 2;

/** The driver for Proxmox VE 7.2 to 9.2. */
export function proxmoxDriver(options: ProxmoxOptions): HypervisorDriver {
  const { send, tokenId, random, settings = {}, callsPerNode = callsPerNodeDefault } = options;
  const clocks = new NodeClocks(options.clock);
  const api = new PveApi(limited(clocks.timed(send), callsPerNode));
  let release = newestKnown;
  let permissions: unknown;
  const context: DriverContext = {
    api,
    clocks,
    configs: new ConfigReader(api),
    glance: new Glance(),
    user: tokenId,
    random,
    settings,
    unlock: options.unlock,
    release: () => release,
    permissions: () => permissions,
  };
  return {
    async system() {
      const answer = await readSystem(api);
      if (!answer.ok) return answer;
      ({ release, permissions } = answer.value);
      const { view } = answer.value;
      if (options.unlock === undefined) return answered(view);
      return answered({ ...view, capabilities: [...view.capabilities, "Unlock"] });
    },
    async inventory() {
      const answer = await readInventory(api);
      if (answer.ok) context.glance.look(answer.value);
      return answer;
    },
    observe: (claim, hints) => observe(context, claim, hints),
    propose: (avoid, first) => propose(context, avoid, first),
    prefer: (key) => prefer(context, key),
    fit: (shape) => fitShape(shape, release),
    preflight: (draft) => preflight(context, draft),
    begin: (operation, fence) => begin(context, operation, fence),
    look: (task) => lookAtTask(api, task),
    cancel: (task, fence) => cancelTask(api, task, fence),
    ...memoryOfTasks(context),
    guest: (claim) => askGuest(context, claim),
    changeOf,
    allocating: (operation, id) => allocating(context, operation, id),
    leftovers: (claim) => findLeftovers(context, claim),
    survey: (known, suspects) => surveyAll(context, known, suspects),
    images: (place) => findImages(context, place),
    discs: (place) => findDiscs(context, place),
    epoch: (installation) => readEpoch(context, installation),
    advance: (change, fence) => advanceEpoch(context, change, fence),
    close: () => options.close?.(),
  };
}
