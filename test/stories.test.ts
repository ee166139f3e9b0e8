import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { Narrator, type Story } from "./stories/narrator.ts";
import {
  deadLeader,
  lockedMachine,
  lostReply,
  missingImage,
  unhealthyNode,
  unknownNode,
} from "./stories/failures.ts";
import { quota, retryLoop, sixtySix, stranger } from "./stories/seeds.ts";

const stories: readonly Story[] = [
  retryLoop,
  sixtySix,
  stranger,
  lockedMachine,
  unhealthyNode,
  unknownNode,
  missingImage,
  quota,
  lostReply,
  deadLeader,
];

/** `BERTH_UPDATE_STORIES=1 npm test -- stories` writes them anew: read what changed as prose. */
const isUpdate = process.env["BERTH_UPDATE_STORIES"] === "1";

describe("the story", () => {
  for (const story of stories) {
    const { file, title } = story;
    test(`"${title}" goes as it is written in ${file}`, async () => {
      const narrator = new Narrator();
      await story.tell(narrator);
      const told = `# ${title}\n\n${narrator.text}`;
      const path = join(import.meta.dirname, "stories", file);
      if (isUpdate) writeFileSync(path, told);
      assert.equal(told, readFileSync(path, "utf8"));
    });
  }
});
