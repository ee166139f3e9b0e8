import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { VMImage } from "../../api/index.ts";
import type { Failure } from "../../hypervisor/index.ts";
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
const failure: Failure = { category: "NetworkError", message: "no answer" };

function stalledOf(view: ImageView, of = image): string | undefined {
  const { conditions = [] } = imageStatusOf(of, view, 0);
  return conditions.find(({ type }) => type === "Stalled")?.status;
}

describe("the status of an image that cannot be used", () => {
  it("says when it is looked for again", () => {
    const status = imageStatusOf(image, { copies: [], failure, nextRetryMs: 30_000 }, 0);
    assert.equal(status.failure?.nextRetryAt, "1970-01-01T00:00:30Z");
    assert.equal(stalledOf({ copies: [], failure, nextRetryMs: 30_000 }), undefined);
  });

  it("says that nothing more is tried, until it is better", () => {
    const stuck = imageStatusOf(image, { copies: [], failure, isStalled: true }, 0);
    assert.equal(stalledOf({ copies: [], failure, isStalled: true }), "True");
    assert.equal(stalledOf({ copies: [] }, { ...image, status: stuck }), undefined);
  });
});
