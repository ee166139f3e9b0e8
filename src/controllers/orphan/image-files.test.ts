import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Claim, ClaimSpec } from "../../api/index.ts";
import { answered, type SurveyedFile } from "../../hypervisor/index.ts";
import { pathNotFound } from "../../kernel/status.ts";
import type { Find } from "./find.ts";
import { planFinds, type SweepInput } from "./plan.ts";
import { retireClaim } from "./steps.ts";
import type { OrphanTurn } from "./turn.ts";

const uuid = "00000000-0000-4000-8000-000000000007";
const fileName = `berth-sha256-${"a".repeat(64)}.qcow2`;
const spec: ClaimSpec = {
  target: "File",
  hypervisor: { name: "lab", systemId: "lab-1" },
  externalId: `n1/local/Image/${fileName}`,
  idChosenBy: "Berth",
  state: "Bound",
  role: "VM",
  origin: "Created",
  everExisted: false,
  identity: uuid,
  installation: uuid,
  owner: { namespace: "default", name: "debian", uid: "u" },
  node: "n1",
  file: { storage: "local", name: fileName, content: "Image" },
};
const file: SurveyedFile = {
  volume: `local:import/${fileName}`,
  fileName,
  use: "Disk",
  storage: "local",
  node: "n1",
  isShared: false,
  sizeBytes: 7,
};

interface Given {
  readonly claim?: Partial<ClaimSpec> | undefined;
  readonly isDeclared?: boolean;
  readonly isNamed?: boolean;
}

function finds({ claim, isDeclared = false, isNamed = false }: Given): Find[] {
  const survey = { machines: [], volumes: [], files: [file], nodes: [], storages: [], missing: [] };
  const known = { metadata: { name: "c-1" }, spec: { ...spec, ...claim } } as unknown as Claim;
  const input: SweepInput = {
    survey,
    installation: uuid,
    claims: [],
    isDeclared: () => false,
    files: claim === undefined ? [] : [known],
    isFileDeclared: () => isDeclared,
    identities: new Set(),
    seen: new Map(),
    imageFiles: new Set(isNamed ? [fileName] : []),
    taken: new Set(),
    blocked: new Map(),
    mayUnlock: false,
  };
  return planFinds(input);
}

const ownerships = (given: Given): string[] => finds(given).map(({ ownership }) => ownership);

describe("an image file that no VMImage names", () => {
  it("is ours if its Claim says so, and its VMImage is gone", () => {
    assert.deepEqual(ownerships({ claim: {} }), ["Ours"]);
    assert.equal(finds({ claim: {} })[0]?.claim, "c-1");
  });

  it("is nobody's if no Claim is about it, or none that is proven", () => {
    assert.deepEqual(ownerships({}), ["Unattributed"]);
    assert.deepEqual(ownerships({ claim: { node: "n2" } }), ["Unattributed"]);
    assert.deepEqual(ownerships({ claim: { state: "Reserved" } }), ["Unattributed"]);
  });

  it("is no orphan while its VMImage is there, or after it was released", () => {
    assert.deepEqual(ownerships({ claim: {}, isDeclared: true }), []);
    assert.deepEqual(ownerships({ claim: { state: "Released" } }), []);
    assert.deepEqual(ownerships({ claim: {}, isNamed: true }), []);
  });
});

describe("the Claim of a file that was to be destroyed", () => {
  async function removed(files: readonly SurveyedFile[]): Promise<boolean> {
    let isRemoved = false;
    const claim = { metadata: { name: "c-1" }, spec };
    const get = ({ name }: { name: string }): Promise<unknown> => {
      return name === "c-1" ? Promise.resolve(claim) : Promise.reject(pathNotFound());
    };
    const turn = {
      orphan: { spec: { kind: "Image", externalId: file.volume }, status: { claim: "c-1" } },
      connection: { systemId: "lab-1", driver: { images: () => Promise.resolve(answered(files)) } },
      deps: {
        client: { of: () => ({ get }) },
        ledger: {
          remove: () => {
            isRemoved = true;
            return Promise.resolve();
          },
        },
      },
    };
    // cast: all that is asked of a turn here.
    assert.ok(await retireClaim(turn as unknown as OrphanTurn));
    return isRemoved;
  }

  it("goes when the file is gone, and not before", async () => {
    assert.equal(await removed([file]), false);
    assert.equal(await removed([]), true);
  });
});
