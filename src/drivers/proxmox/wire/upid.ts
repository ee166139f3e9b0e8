/** A task's name: UPID:node:pid:pstart:starttime:type:id:user: (pve-common UPID.pm). */
export interface Upid {
  readonly node: string;
  readonly startMs: number;
  readonly type: string;
  /** Usually the VMID; for qmclone that of the source, for imgdel `VMID@STORAGE`. */
  readonly id: string;
  /** The whole token id: `user@realm!token`. */
  readonly user: string;
}

// pstart may have nine digits on hosts that run for long.
const form = /^UPID:([^:]+):[0-9A-F]{8,9}:[0-9A-F]{8,9}:([0-9A-F]{8}):([^:]+):([^:]*):([^:]+):$/i;

/** For sorting, newest first: tasks of one second by when the kernel started their processes. */
export function newestFirst(left: StartedTask, right: StartedTask): number {
  return right.startMs - left.startMs || ticksOf(right.task) - ticksOf(left.task);
}

interface StartedTask {
  readonly task: string;
  readonly startMs: number;
}

/** Hundredths of a second since its node was booted: of tasks of one node they tell the order. */
function ticksOf(upid: string): number {
  return Number.parseInt(upid.split(":")[3] ?? "0", 16);
}

export function parseUpid(text: string): Upid | undefined {
  const match = form.exec(text);
  if (match === null) return undefined;
  const [, node = "", start = "", type = "", id = "", user = ""] = match;
  return { node, startMs: Number.parseInt(start, 16) * 1000, type, id, user };
}
