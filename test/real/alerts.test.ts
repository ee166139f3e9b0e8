import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { before, test } from "node:test";
import { stringify } from "yaml";
import { findPromtool } from "../../scripts/real/promtool.ts";
import { startBerth, temporaryFolder } from "./support/berth.ts";
import { connect } from "./support/http.ts";
import "./support/cleanup.ts";
import { monitoringFolder, readAlerts, readQueries } from "./support/monitoring.ts";

/** The alerts, judged by Prometheus' own tool. */

let program = "";

before(() => {
  program = findPromtool() ?? assert.fail("there is no promtool");
});

function promtool(...args: string[]): string {
  try {
    return execFileSync(program, args, { encoding: "utf8", stdio: "pipe" });
  } catch (error) {
    const { stdout = "", stderr = "" } = error as { stdout?: string; stderr?: string };
    return assert.fail(`promtool ${args.join(" ")}\n${stdout}${stderr}`);
  }
}

test("the rules are ones that Prometheus takes", () => {
  const alerts = readAlerts();
  const said = promtool("check", "rules", join(monitoringFolder, "alerts.yaml"));
  assert.match(said, new RegExp(`SUCCESS: ${alerts.length} rules found`));
});

test("every alert fires when it should, and not before", () => {
  const said = promtool("test", "rules", join(monitoringFolder, "alerts.test.yaml"));
  assert.match(said, /SUCCESS/);
});

test("what a running berth serves is what Prometheus reads, and breaks none of its habits", async (t) => {
  const folder = temporaryFolder("metrics");
  const berth = await startBerth({ data: folder.path, demo: true });
  const http = connect(berth);
  t.after(async () => {
    http.close();
    await berth.stop();
    folder.remove();
  });
  const { text } = await http.ask({ path: "/metrics" });
  assert.match(text, /^berth_build_info/m);
  assert.equal(checkMetrics(text), "");
  const broken = `${text}# TYPE berth_bad counter\nberth_bad 1\n`;
  assert.match(checkMetrics(broken), /berth_bad/, "it can fail");
});

/** What promtool has to say against metrics; nothing where they are as they should be. */
function checkMetrics(input: string): string {
  const { stdout, stderr } = spawnSync(program, ["check", "metrics"], { input, encoding: "utf8" });
  return `${stdout}${stderr}`.trim();
}

test("a broken rule is noticed, so the above can fail", (t) => {
  const folder = temporaryFolder("promtool");
  t.after(() => folder.remove());
  const path = join(folder.path, "rules.yaml");
  const rules = [{ alert: "Bad", expr: "sum by (berth_objects" }];
  writeFileSync(path, stringify({ groups: [{ name: "x", rules }] }));
  assert.throws(() => promtool("check", "rules", path), /parse error/);
});

test("every query of the dashboard is one that Prometheus understands", (t) => {
  const folder = temporaryFolder("promtool");
  t.after(() => folder.remove());
  const queries = readQueries();
  assert.ok(queries.length > 20);
  // Old versions of the tool cannot parse a query alone, but all of them parse rules.
  const rules = queries.map(({ expr }, i) => ({ record: `dashboard:query_${i}`, expr }));
  const path = join(folder.path, "dashboard.yaml");
  writeFileSync(path, stringify({ groups: [{ name: "dashboard", rules }] }));
  const said = promtool("check", "rules", path);
  assert.match(said, new RegExp(`SUCCESS: ${queries.length} rules found`));
});
