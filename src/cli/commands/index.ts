import type { Command } from "../command.ts";
import { adopt } from "./adopt.ts";
import { apply } from "./apply.ts";
import { backup } from "./backup.ts";
import { createComplete } from "./complete.ts";
import { completion } from "./completion.ts";
import { connect } from "./connect.ts";
import { controller } from "./controller.ts";
import { crds } from "./crds.ts";
import { deleteCommand } from "./delete.ts";
import { describe } from "./describe.ts";
import { doctor } from "./doctor.ts";
import { edit } from "./edit.ts";
import { get } from "./get.ts";
import { orphans } from "./orphans.ts";
import { plan } from "./plan.ts";
import { restore } from "./restore.ts";
import { sim } from "./sim.ts";
import { support } from "./support.ts";
import { takeover } from "./takeover.ts";
import { up } from "./up.ts";
import { user } from "./user.ts";
import { wait } from "./wait.ts";
import { why } from "./why.ts";
import { cancel, forget, pause, restart, resume, retry } from "./words.ts";

/** Every command, in the order in which help shows them. */
export const commands: readonly Command[] = [
  up,
  get,
  plan,
  apply,
  describe,
  why,
  edit,
  wait,
  deleteCommand,
  orphans,
  pause,
  resume,
  retry,
  restart,
  cancel,
  forget,
  adopt,
  connect,
  takeover,
  doctor,
  support,
  controller,
  crds,
  user,
  backup,
  restore,
  sim,
  completion,
  createComplete(() => commands),
];
