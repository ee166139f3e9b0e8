import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { virtualMachineKind } from "../../../api/index.ts";
import fc from "fast-check";
import { type Machine, shapeDifferences } from "../../../hypervisor/index.ts";
import { isJsonObject } from "../../../kernel/json.ts";
import { anyDevices, anyShape } from "../translate/testing/shapes.ts";
import { changeOf } from "./change-of.ts";
import { fieldTable } from "./table.ts";

/** Every field that a manifest can set, lists as `[]`. */
function* fieldsOf(path: string, schema: unknown): Iterable<string> {
  if (!isJsonObject(schema)) return;
  const { items, properties } = schema;
  if (isJsonObject(items) && isJsonObject(items["properties"])) {
    yield `${path}[]`;
    yield* fieldsOf(`${path}[]`, items);
  } else if (isJsonObject(properties) && Object.keys(properties).length > 0) {
    for (const [key, value] of Object.entries(properties)) {
      yield* fieldsOf(path === "" ? key : `${path}.${key}`, value);
    }
  } else yield path;
}

function covers(line: string, field: string): boolean {
  if (line.endsWith(".*")) return field.startsWith(line.slice(0, -1));
  return line === field || (line.endsWith("[]") && field === `${line}.name`);
}

const fields = [...fieldsOf("", virtualMachineKind.schema.properties?.["spec"])];

describe("the table of changes", () => {
  it("has a line for every field of VirtualMachine.spec", () => {
    assert(fields.length > 100);
    const missing = fields.filter((field) => !fieldTable.some((line) => covers(line.field, field)));
    assert.deepEqual(missing, []);
  });

  it("has no line for a field that there is not, and none twice", () => {
    const idle = fieldTable.filter((line) => !fields.some((field) => covers(line.field, field)));
    assert.deepEqual(
      idle.map(({ field }) => field),
      [],
    );
    const names = fieldTable.map(({ field }) => field);
    assert.equal(new Set(names).size, names.length);
  });

  it("tells of a difference what it costs, by the words of the contract", () => {
    const classes = {
      "cpu.cores": "Reboot",
      "cpu.limitMillicores": "Live",
      "cpu.features[aes].isEnabled": "Reboot",
      "memory.sizeBytes": "Reboot",
      "disks[root].limits.burst.readBytesPerSecond": "Live",
      "disks[root].cache": "Reboot",
      "networks[lan].network": "Live",
      "networks[lan].macAddress": "PowerOff",
      "networks[lan]": "Live",
      "cloudInit.userName": "Impossible",
      "firmware.secureBoot": "Impossible",
      "firmware.keepsVariables": "Reboot",
      "guestOs.version": "Reboot",
      startup: "Live",
      "startup.order": "Live",
      name: "Live",
      bootOrder: "Reboot",
      nothing: "Impossible",
    };
    for (const [path, expected] of Object.entries(classes)) {
      assert.equal(changeOf(path).class, expected, path);
      assert.notEqual(changeOf(path).detail, "");
    }
  });

  it("has a line for everything in which two shapes can differ", () => {
    fc.assert(
      fc.property(anyShape, anyDevices, (shape, devices) => {
        for (const { path } of shapeDifferences({ ...shape, ...devices }, {})) {
          assert.doesNotMatch(changeOf(path).detail, /^nothing is known/, path);
        }
      }),
    );
  });

  it("knows that some buses cannot be changed under a running guest", () => {
    const disk = { slot: "sata0", volume: "v", storage: "s", sizeBytes: 1, bus: "sata" } as const;
    const machine: Machine = {
      externalId: "1",
      node: "pve1",
      version: "d",
      power: "Running",
      isTemplate: false,
      shape: {},
      disks: [{ ...disk, name: "old" }],
      networks: [],
      pending: [],
      volumes: [],
      hasSnapshots: false,
    };
    assert.equal(changeOf("disks[old].backup", machine).class, "Reboot");
    assert.equal(changeOf("disks[new].backup", machine).class, "Live");
  });
});
