import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { isJsonObject, type JsonObject } from "../../src/kernel/json.ts";
import { readDatabase, type Kept } from "./stage.ts";

/** The kept data folder of a release, and what that release did with it when it was started. */
export interface KeptFolder extends Kept {
  readonly writes: readonly string[];
}

interface Facts {
  readonly nowMs: number;
  readonly writes: readonly string[];
}

export async function openKept(release: string): Promise<KeptFolder> {
  const read = (name: string): Buffer => {
    return readFileSync(new URL(`./${release}/${name}`, import.meta.url));
  };
  const folder = mkdtempSync(join(tmpdir(), "berth-upgrade-"));
  try {
    const database = join(folder, "berth.db");
    writeFileSync(database, gunzipSync(read("berth.db.gz")));
    const facts: Facts = JSON.parse(read("facts.json").toString());
    const cluster = gunzipSync(read("cluster.json.gz")).toString();
    return { ...facts, cluster, records: await readDatabase(database) };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** The same folder, with every Claim changed as it lies on the disk. */
export function withClaims<Folder extends Kept>(
  kept: Folder,
  change: (spec: JsonObject) => JsonObject,
): Folder {
  const records = kept.records.map((record) => {
    if (record.bucket !== "berth.dev/claims") return record;
    const object: unknown = JSON.parse(Buffer.from(record.value).toString());
    const { spec, ...rest } = isJsonObject(object) ? object : {};
    const changed = { ...rest, spec: change(isJsonObject(spec) ? spec : {}) };
    return { ...record, value: Buffer.from(JSON.stringify(changed)) };
  });
  return { ...kept, records };
}

/** The CustomResourceDefinitions of a release. */
export function crdsOf(release: string): string {
  const file = new URL(`./${release}/crds.yaml.gz`, import.meta.url);
  return gunzipSync(readFileSync(file)).toString();
}

/** The Claims of a folder as they lie on the disk. */
export function claimsIn(kept: Kept): JsonObject[] {
  const specs: JsonObject[] = [];
  withClaims(kept, (spec) => {
    specs.push(spec);
    return spec;
  });
  return specs;
}
