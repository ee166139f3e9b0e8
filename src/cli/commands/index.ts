import type { Command } from "../command.ts";
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
import { restore } from "./restore.ts";
import { sim } from "./sim.ts";
import { up } from "./up.ts";
import { user } from "./user.ts";
import { wait } from "./wait.ts";
import { why } from "./why.ts";

/** Every command, in the order in which help shows them. */
export const commands: readonly Command[] = [
  up,
  get,
  apply,
  describe,
  why,
  edit,
  wait,
  deleteCommand,
  orphans,
  connect,
  doctor,
  controller,
  crds,
  user,
  backup,
  restore,
  sim,
  completion,
  createComplete(() => commands),
];
