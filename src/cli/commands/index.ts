import type { Command } from "../command.ts";
import { backup } from "./backup.ts";
import { crds } from "./crds.ts";
import { restore } from "./restore.ts";
import { up } from "./up.ts";
import { user } from "./user.ts";

/** Every command, in the order in which help shows them. */
export const commands: readonly Command[] = [up, crds, user, backup, restore];
