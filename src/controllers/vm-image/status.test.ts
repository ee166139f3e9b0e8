import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { VMImage } from "../../api/index.ts";
import type { StatusFailure } from "../failures/index.ts";
import { imageStatusOf, type ImageView } from "./status.ts";

const image: VMImage = {
  apiVersion: "berth.dev/v1alpha1",
  kind: "VMImage",
  metadata: { namespace: "default", name: "debian", generation: 1 },
  spec: {
    format: "qcow2",
    source: { volume: { hypervisorRef: { name: "east" }, id: "local:import/d.qcow2" } },
  },
};
const at = "1970-01-01T00:00:00Z";
const failure: StatusFailure = {
  category: "NetworkError",
  message: "No answer.",
  attempts: 1,
  firstAt: at,
  lastAt: at,
};
const retried = { ...failure, nextRetryAt: "1970-01-01T00:00:30Z" };

function stalledOf(view: ImageView, of = image): string | undefined {
  const { conditions = [] } = imageStatusOf(of, view, 0);
  return conditions.find(({ type }) => type === "Stalled")?.status;
}

describe("the status of an image that cannot be used", () => {
  it("says when it is looked for again", () => {
    const status = imageStatusOf(image, { copies: [], failure: retried }, 0);
    assert.equal(status.failure?.nextRetryAt, "1970-01-01T00:00:30Z");
    assert.equal(stalledOf({ copies: [], failure: retried }), undefined);
  });

  it("says that nothing more is tried, until it is better", () => {
    const stuck = imageStatusOf(image, { copies: [], failure, isStalled: true }, 0);
    assert.equal(stalledOf({ copies: [], failure, isStalled: true }), "True");
    assert.equal(stalledOf({ copies: [] }, { ...image, status: stuck }), undefined);
  });
});

describe("a copy that a look was enough to refuse", () => {
  const place = { hypervisor: "east", storage: "local", brought: true, verified: false };
  const copyWith = (category: StatusFailure["category"]): ImageView => {
    return { copies: [{ ...place, state: "Failed", failure: { ...failure, category } }] };
  };

  it("says that a person has to act, and not where it waits for another thing", () => {
    assert.equal(stalledOf(copyWith("PermissionDenied")), "True");
    assert.equal(stalledOf(copyWith("DependencyNotReady")), undefined);
  });
});

describe("an image is Ready only as it was observed", () => {
  const http = { url: "https://images.example/d.qcow2", checksum: "sha256:0" } as never;
  const remote: VMImage = { ...image, spec: { format: "qcow2", source: { http } } };
  const place = { hypervisor: "east", storage: "local", brought: true, verified: true };

  function readyOf(view: ImageView, of = remote): string {
    const { conditions = [] } = imageStatusOf(of, view, 0);
    const ready = conditions.find(({ type }) => type === "Ready");
    return `${ready?.status} ${ready?.reason}`;
  }

  it("with its file wherever it is needed", () => {
    const copies = [{ ...place, state: "Present" as const }];
    assert.equal(readyOf({ copies }), "True Available");
    assert.equal(readyOf({ copies: [], isWanted: false }), "True OnDemand");
  });

  it("and not while it is brought, after it failed, or when the file is gone", () => {
    const operation = { id: "1", step: "Download", intent: "Bring it.", attempt: 1, since: at };
    const coming = { ...place, state: "Downloading" as const, operation };
    assert.equal(readyOf({ copies: [coming] }), "False Downloading");
    const failed = { ...failure, step: "Download" };
    assert.equal(
      readyOf({ copies: [{ ...place, state: "Failed", failure: failed }] }),
      "False NetworkError",
    );
    assert.equal(readyOf({ copies: [{ ...place, state: "Missing" }] }), "False Missing");
    // Its only file was just removed, because the image is deleted or names another one.
    assert.equal(readyOf({ copies: [] }), "False Missing");
  });

  it("and unknown while the hypervisor cannot be asked", () => {
    const copies = [{ ...place, state: "Present" as const }];
    assert.equal(readyOf({ copies, failure }), "Unknown Unreachable");
    assert.equal(
      readyOf({ copies: [{ ...place, state: "Present", failure }] }),
      "Unknown Unreachable",
    );
    const denied = { ...failure, category: "PermissionDenied" as const };
    assert.equal(readyOf({ copies, failure: denied }), "False PermissionDenied");
  });

  it("and unknown while a hypervisor that needs it was not asked yet", () => {
    const copies = [{ ...place, state: "Present" as const }];
    assert.equal(readyOf({ copies, unasked: ["west"] }), "Unknown Unreachable");
    assert.equal(readyOf({ copies: [], unasked: ["west"] }), "Unknown Unreachable");
  });

  it("and unknown where the hypervisor does not list the volume", () => {
    assert.equal(readyOf({ copies: [], isListed: false }, image), "Unknown NotListed");
  });
});
