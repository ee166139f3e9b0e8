import type { PveReply, PveRequest } from "../../src/drivers/proxmox/index.ts";

/** A request in words, with what came of it. */
export function wordsOf(request: PveRequest, reply: PveReply): string {
  const { method, path } = request;
  return `${deedOf(request)} (\`${method} ${shortened(path)}\`)${endOf(reply)}`;
}

const powers: Readonly<Record<string, string>> = {
  start: "started",
  stop: "switched off",
  shutdown: "asked to shut down",
  reboot: "restarted",
};

const deeds: readonly [RegExp, (params: Params, found: RegExpExecArray) => string][] = [
  [
    /^POST \/nodes\/([^/]+)\/qemu$/,
    ({ vmid }, [, node]) => `machine ${vmid} on ${node}: made, without disks`,
  ],
  [/^POST .*\/qemu\/(\d+)\/clone$/, ({ newid }, [, id]) => `machine ${newid}: copied from ${id}`],
  [
    /^(?:POST|PUT) .*\/qemu\/(\d+)\/config$/,
    (params, [, id]) => `machine ${id}: ${changeOf(params)}`,
  ],
  [
    /^PUT .*\/qemu\/(\d+)\/resize$/,
    ({ disk, size }, [, id]) => `machine ${id}: ${disk} grows to ${gibibytes(size)}`,
  ],
  [
    /^POST .*\/qemu\/(\d+)\/status\/(\w+)$/,
    (_, [, id, deed = ""]) => `machine ${id}: ${powers[deed] ?? deed}`,
  ],
  [/^DELETE .*\/qemu\/(\d+)$/, (_, [, id]) => `machine ${id}: destroyed`],
  [
    /^DELETE .*\/content\/(.+)$/,
    (_, [, volume = ""]) => `volume ${decodeURIComponent(volume)}: freed`,
  ],
  [/^POST \/pools$/, () => "Berth's epoch: written, as an empty pool"],
  [/^DELETE \/pools\/berth-epoch-/, () => "Berth's epoch before this one: removed"],
];

type Params = NonNullable<PveRequest["params"]>;

function deedOf({ method, path, params = {} }: PveRequest): string {
  for (const [pattern, words] of deeds) {
    const found = pattern.exec(`${method} ${path}`);
    if (found !== null) return words(params, found);
  }
  return "a change";
}

function changeOf(params: Params): string {
  const drives = Object.entries(params).filter(([key]) => /^(scsi|ide|sata|virtio)\d+$/.test(key));
  const [first] = drives;
  if (first !== undefined) {
    const from = /import-from=([^,]+)/.exec(String(first[1]))?.[1];
    return from === undefined ? `${first[0]} is a new disk` : `${first[0]} is filled from ${from}`;
  }
  const keys = Object.keys(params).filter((key) => key !== "digest" && key !== "description");
  return keys.length === 0 ? "its mark is written" : `${keys.join(", ")} changed`;
}

function gibibytes(size: string | number | undefined): string {
  return String(size).replace(/G$/, " GiB");
}

function endOf(reply: PveReply): string {
  switch (reply.type) {
    case "answered":
      return reply.status === 200 ? "" : `: refused, ${reply.status} ${reply.reason}`;
    case "lost":
      return ": the reply is lost";
    case "notSent":
      return ": not sent";
  }
}

function shortened(path: string): string {
  return path.replaceAll(/[0-9a-f]{32,}/g, "…");
}
