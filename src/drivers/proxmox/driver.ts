import type { Random } from "../../kernel/random.ts";
import { answered, failed } from "../../hypervisor/index.ts";
import type { HypervisorDriver } from "../../hypervisor/index.ts";
import { askGuest } from "./agent.ts";
import { changeOf } from "./changes/change-of.ts";
import { ConfigReader } from "./config-reader.ts";
import type { DriverContext, ProxmoxSettings, UnlockAccount } from "./context.ts";
import { fitShape } from "./fit.ts";
import { Glance } from "./glance.ts";
import { findDiscs, findImages } from "./images.ts";
import { readInventory } from "./inventory.ts";
import { findLeftovers } from "./leftovers.ts";
import { observe } from "./observe.ts";
import { begin } from "./operations/begin.ts";
import { preflight } from "./preflight.ts";
import { propose } from "./propose.ts";
import { newestKnown } from "./release.ts";
import { surveyAll } from "./survey.ts";
import { readSystem } from "./system.ts";
import { cancelTask, lookAtTask, recallTasks } from "./tasks.ts";
import { PveApi } from "./wire/api.ts";
import { limited } from "./wire/limited.ts";
import type { Send } from "./wire/wire.ts";

export interface ProxmoxOptions {
  readonly send: Send;
  /** The token's id, `user@realm!name`: what proves that a task is ours. Not the secret. */
  readonly tokenId: string;
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
  const api = new PveApi(limited(send, callsPerNode));
  let release = newestKnown;
  let permissions: unknown;
  const context: DriverContext = {
    api,
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
    propose: (avoid) => propose(context, avoid),
    fit: (shape) => fitShape(shape, release),
    preflight: (draft) => preflight(context, draft),
    begin: (operation, fence) => begin(context, operation, fence),
    look: (task) => lookAtTask(api, task),
    cancel: (task, fence) => cancelTask(api, task, fence),
    recall: async ({ externalId, node }, sinceMs, hints = {}) =>
      node === undefined
        ? failed({ category: "DependencyNotReady", message: `no node is known for ${externalId}` })
        : await recallTasks(api, { externalId, node, sinceMs, user: tokenId, ...hints }),
    guest: (claim) => askGuest(context, claim),
    changeOf,
    leftovers: (claim) => findLeftovers(context, claim),
    survey: (known) => surveyAll(context, known),
    images: (place) => findImages(context, place),
    discs: (place) => findDiscs(context, place),
    close: () => options.close?.(),
  };
}
