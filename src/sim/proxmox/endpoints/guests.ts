import { type Endpoint, immediate } from "../endpoint.ts";
import {
  agentCommand,
  agentCommands,
  agentExec,
  agentExecStatus,
  agentFileRead,
  agentFileWrite,
  agentPassword,
} from "../vm/agent.ts";
import { cloneVm } from "../vm/clone.ts";
import { cloudinitDump, cloudinitPending, regenerateCloudinit } from "../vm/cloudinit.ts";
import { createVm } from "../vm/create.ts";
import { destroyVm } from "../vm/destroy.ts";
import { readFeature } from "../vm/feature.ts";
import { migrateVm, migrationState } from "../vm/migrate.ts";
import { moveDisk } from "../vm/move.ts";
import { rebootVm, resetVm, shutdownVm, startVm, stopVm } from "../vm/power.ts";
import { listVms, readConfig, readPending, readStatus } from "../vm/read.ts";
import { resizeDisk } from "../vm/resize.ts";
import {
  createSnapshot,
  deleteSnapshot,
  describeSnapshot,
  listSnapshots,
  rollback,
  snapshotConfig,
} from "../vm/snapshot.ts";
import { resumeVm, suspendVm } from "../vm/suspend.ts";
import { makeTemplate } from "../vm/template.ts";
import { unlinkDisks, updateVm, updateVmLater } from "../vm/update.ts";
import { guestIndex, powerIndex } from "./indexes.ts";

const guest = "/nodes/{node}/qemu/{vmid}";

/** What is served of guests. */
export const guestEndpoints: Readonly<Record<string, Endpoint>> = {
  "GET /nodes/{node}/qemu": immediate(listVms),
  "POST /nodes/{node}/qemu": createVm,
  [`GET ${guest}`]: immediate(() => guestIndex.map((subdir) => ({ subdir }))),
  [`DELETE ${guest}`]: destroyVm,
  [`GET ${guest}/config`]: immediate(readConfig),
  [`PUT ${guest}/config`]: updateVm,
  [`POST ${guest}/config`]: updateVmLater,
  [`GET ${guest}/pending`]: immediate(readPending),
  [`PUT ${guest}/unlink`]: unlinkDisks,
  [`PUT ${guest}/resize`]: resizeDisk,
  [`POST ${guest}/move_disk`]: moveDisk,
  [`POST ${guest}/clone`]: cloneVm,
  [`POST ${guest}/template`]: makeTemplate,
  [`GET ${guest}/migrate`]: immediate(migrationState),
  [`POST ${guest}/migrate`]: migrateVm,
  [`GET ${guest}/status`]: immediate(() => powerIndex.map((subdir) => ({ subdir }))),
  [`GET ${guest}/status/current`]: immediate(readStatus),
  [`POST ${guest}/status/start`]: startVm,
  [`POST ${guest}/status/stop`]: stopVm,
  [`POST ${guest}/status/shutdown`]: shutdownVm,
  [`POST ${guest}/status/reboot`]: rebootVm,
  [`POST ${guest}/status/reset`]: resetVm,
  [`POST ${guest}/status/suspend`]: suspendVm,
  [`POST ${guest}/status/resume`]: resumeVm,
  [`GET ${guest}/snapshot`]: listSnapshots,
  [`POST ${guest}/snapshot`]: createSnapshot,
  [`GET ${guest}/snapshot/{snapname}`]: immediate(() => [{ cmd: "rollback" }, { cmd: "config" }]),
  [`DELETE ${guest}/snapshot/{snapname}`]: deleteSnapshot,
  [`GET ${guest}/snapshot/{snapname}/config`]: immediate(snapshotConfig),
  [`PUT ${guest}/snapshot/{snapname}/config`]: describeSnapshot,
  [`POST ${guest}/snapshot/{snapname}/rollback`]: rollback,
  [`GET ${guest}/cloudinit`]: immediate(cloudinitPending),
  [`PUT ${guest}/cloudinit`]: regenerateCloudinit,
  [`GET ${guest}/cloudinit/dump`]: immediate(cloudinitDump),
  [`GET ${guest}/feature`]: immediate(readFeature),
  ...agentEndpoints(),
};

/** One endpoint for each command, by the verb that the schema has for it, and those with bodies. */
function agentEndpoints(): Record<string, Endpoint> {
  const agent = `${guest}/agent`;
  const special = ["exec", "exec-status", "file-read", "file-write", "set-user-password"];
  const all = [...agentCommands, ...special].sort();
  const simple = agentCommands.flatMap((name): [string, Endpoint][] => [
    [`GET ${agent}/${name}`, agentCommand(name)],
    [`POST ${agent}/${name}`, agentCommand(name)],
  ]);
  return {
    [`GET ${agent}`]: immediate(() => all.map((name) => ({ name }))),
    [`POST ${agent}`]: agentCommand(),
    ...Object.fromEntries(simple),
    [`POST ${agent}/exec`]: agentExec,
    [`GET ${agent}/exec-status`]: agentExecStatus,
    [`GET ${agent}/file-read`]: agentFileRead,
    [`POST ${agent}/file-write`]: agentFileWrite,
    [`POST ${agent}/set-user-password`]: agentPassword,
  };
}
