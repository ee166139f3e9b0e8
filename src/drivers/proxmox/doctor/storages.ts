import type { Finding } from "../../../hypervisor/index.ts";

/** A storage as one node sees it. */
export interface StorageRow {
  readonly name: string;
  readonly node: string;
  readonly isUsable: boolean;
  readonly isShared: boolean;
  readonly contents: readonly string[];
  readonly usedBytes: number;
  readonly totalBytes: number;
}

export interface StorageNeeds {
  readonly defaults: { readonly storage?: string; readonly imageStorage?: string };
  /** Nodes that answer: what is said of the others is no news of the storage. */
  readonly online: ReadonlySet<string>;
  /** Whether the release keeps disk images as content `import`. */
  readonly hasImports: boolean;
}

/** Above this a thin pool may fill up before somebody looks again. */
const fullWarning = 0.9;
const fullProblem = 0.98;

/** Whether there is somewhere to put disks and images, and space in it. Pure. */
export function judgeStorages(rows: readonly StorageRow[], needs: StorageNeeds): Finding[] {
  if (rows.length === 0) {
    const message = "no storage can be seen";
    return [problem(message, "See what is said about rights, or add one (pvesm add).")];
  }
  const here = rows.filter(({ node }) => needs.online.has(node));
  const findings = [
    ...here.filter(({ isUsable }) => !isUsable).map(unusable),
    ...seenOnce(here.filter(({ isUsable }) => isUsable)).flatMap(fullness),
    ...judgeContents(rows, needs),
    ...judgeDefaults(rows, needs),
  ];
  if (findings.length > 0) return findings;
  const names = [...new Set(rows.map(({ name }) => name))].toSorted();
  const message = `${names.length} storages with space: ${names.join(", ")}`;
  return [{ check: "Storages", level: "ok", message }];
}

/** A shared storage is as full on one node as on the next. */
function seenOnce(rows: readonly StorageRow[]): StorageRow[] {
  const seen = new Set<string>();
  return rows.filter(({ name, isShared }) => {
    const isFirst = !seen.has(name);
    if (isShared) seen.add(name);
    return isFirst;
  });
}

function unusable(row: StorageRow): Finding {
  return {
    check: "Storages",
    level: "warning",
    message: `the storage ${placeOf(row)} is not available`,
    remedy: "Look at it with pvesm status on the node.",
  };
}

function fullness(row: StorageRow): Finding[] {
  const { usedBytes, totalBytes } = row;
  const part = totalBytes > 0 ? usedBytes / totalBytes : 0;
  if (part < fullWarning) return [];
  const free = humanBytes(Math.max(0, totalBytes - usedBytes));
  const message = `the storage ${placeOf(row)} is ${Math.floor(part * 100)} % full: ${free} free`;
  const remedy = "Make space, or give its machines another storage.";
  if (part >= fullProblem) return [problem(message, remedy)];
  return [{ check: "Storages", level: "warning", message, remedy }];
}

function judgeContents(rows: readonly StorageRow[], { hasImports }: StorageNeeds): Finding[] {
  const has = (content: string): boolean => rows.some(({ contents }) => contents.includes(content));
  const findings: Finding[] = [];
  if (!has("images")) {
    const remedy = "On a node, as root: pvesm set STORAGE --content …,images";
    findings.push(problem("no storage takes disks (content images)", remedy));
  }
  if (hasImports && !has("import")) {
    findings.push({
      check: "Storages",
      level: "warning",
      message: "no storage takes disk images (content import): VMImages cannot be brought in",
      remedy: "Add import to the content of a directory storage (pvesm set).",
    });
  }
  return findings;
}

function judgeDefaults(rows: readonly StorageRow[], needs: StorageNeeds): Finding[] {
  const { storage, imageStorage } = needs.defaults;
  const wanted = [
    { field: "storage", name: storage, content: "images" },
    { field: "imageStorage", name: imageStorage, content: needs.hasImports ? "import" : "iso" },
  ];
  return wanted.flatMap(({ field, name, content }) => {
    if (name === undefined) return [];
    const found = rows.find((row) => row.name === name);
    const remedy = `Name another in spec.defaults.${field} of the Hypervisor, or mend it.`;
    if (found === undefined) {
      return [problem(`spec.defaults.${field} is ${name}, and there is no such storage`, remedy)];
    }
    if (found.contents.includes(content)) return [];
    const message = `spec.defaults.${field} is ${name}, which does not take ${content}`;
    return [problem(message, remedy)];
  });
}

function placeOf({ name, node, isShared }: StorageRow): string {
  return isShared ? name : `${name} on ${node}`;
}

function problem(message: string, remedy: string): Finding {
  return { check: "Storages", level: "problem", message, remedy };
}

const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

function humanBytes(bytes: number): string {
  const power = Math.min(units.length - 1, Math.floor(Math.log2(Math.max(1, bytes)) / 10));
  const value = bytes / 1024 ** power;
  return `${value < 10 && power > 0 ? value.toFixed(1) : Math.round(value)} ${units[power] ?? "B"}`;
}
