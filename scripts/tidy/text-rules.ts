import { roomOf } from "./import-rules.ts";
import { columnsMax, fileLinesMax, readmeLinesMax, rooms, testLinesMax } from "./policy.ts";
import { type CodeFile, type Finding, isGenerated, type Project, type Rule } from "./project.ts";
import { servesTests } from "./project.ts";

/** A file that does not fit in a head is two files. */
export const fileSize: Rule = (project) => {
  return [...project.code.values()].flatMap(({ path, text }) => {
    const lines = countLines(text);
    const max = servesTests(path) ? testLinesMax : fileLinesMax;
    if (lines <= max || isGenerated(path)) return [];
    const message = `${lines} lines, ${max} are the limit: move its second concept out.`;
    return [{ path, line: max + 1, rule: "file-size", message }];
  });
};

/**
 * Code fits beside other code on a screen. A line may be longer for the sake of an address or of
 * one long literal: a text that people search for is not broken.
 */
export const columns: Rule = (project) => {
  return [...project.code.values()]
    .filter(({ path }) => !isGenerated(path))
    .flatMap((file) => {
      const excused = linesOfLiterals(file);
      return linesOf(file.text).flatMap((content, index) => {
        const line = index + 1;
        if (content.length <= columnsMax || content.includes("://") || excused.has(line)) return [];
        const message = `${content.length} columns, ${columnsMax} are the limit: break the line.`;
        return [{ path: file.path, line, rule: "columns", message }];
      });
    });
};

/** The lines on which a literal takes most of the room. */
function linesOfLiterals({ tokens }: CodeFile): Set<number> {
  const literals = tokens.filter(({ kind, text }) => {
    return ["string", "template", "regex"].includes(kind) && text.length > columnsMax / 2;
  });
  return new Set(literals.map((token) => token.line));
}

/** The gap in each keeps this file from containing what it forbids; it matches nothing. */
const gap = "(?:)";
const forbidden: readonly { pattern: RegExp; why: string }[] = [
  { pattern: new RegExp(`\\bFIX${gap}ME\\b`), why: "is not for merging: mend it now" },
  { pattern: new RegExp(`@ts-${gap}(ignore|nocheck)`), why: "silences the compiler" },
  { pattern: new RegExp(`(?<![\\w./-])/${gap}(root|Users)/\\w`), why: "is a path of one machine" },
  { pattern: new RegExp(`\\bregistry${gap}\\.[\\w-]+\\.(org|com|io|dev)`), why: "is one registry" },
  { pattern: new RegExp(`"resolved": *${gap}"https?:`), why: "ties the lockfile to a registry" },
];

/** The repository speaks of itself only, and holds nothing half-done. */
export const words: Rule = (project) => {
  return project.files.flatMap(({ path, text }) =>
    forbidden
      .filter(({ pattern }) => pattern.test(text))
      .flatMap(({ pattern, why }) => {
        const index = linesOf(text).findIndex((content) => pattern.test(content));
        const found = pattern.exec(linesOf(text)[index] ?? "")?.[0] ?? "";
        return [{ path, line: index + 1, rule: "words", message: `"${found}" ${why}.` }];
      }),
  );
};

/** Every room says at its entrance what it is, must not know, and where to start reading. */
export const readmes: Rule = (project) => {
  const found = new Set([...project.code.keys()].map(roomOf).filter((room) => room !== undefined));
  return [...found].flatMap((room) => readmeFault(project, room));
};

function readmeFault(project: Project, room: string): Finding[] {
  const path = `src/${room}/README.md`;
  const readme = project.files.find((file) => file.path === path);
  if (readme === undefined) {
    const message = "missing: say what this room is, must not know, and where to start reading.";
    return [{ path, line: 1, rule: "readmes", message }];
  }
  const lines = countLines(readme.text);
  if (lines <= readmeLinesMax) return [];
  const message = `${lines} lines, ${readmeLinesMax} are the limit: details belong into the code.`;
  return [{ path, line: readmeLinesMax + 1, rule: "readmes", message }];
}

/** Code lives in rooms. */
export const homes: Rule = (project) => {
  return [...project.code.keys()]
    .filter((path) => path.startsWith("src/"))
    .filter((path) => {
      const room = roomOf(path);
      return room === undefined || !(room.replace(/\/.*/, "/*") in rooms || room in rooms);
    })
    .map((path) => {
      const message = "lies in no room: see scripts/tidy/policy.ts for the rooms there are.";
      return { path, line: 1, rule: "homes", message };
    });
};

function linesOf(text: string): string[] {
  return text.split("\n");
}

function countLines(text: string): number {
  return linesOf(text.replace(/\n$/, "")).length;
}
