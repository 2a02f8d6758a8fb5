import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { SourceFile } from '../source/measure.ts'

const specifications =
  /(UPP|UAP|UAICP|ThreadProtocol|Standard Agents|RFC \d+|FIPS|SemConv|ISO|HTML|JSON Schema|Draft)/

/** Comments that cite a section without its specification, or a numbered note that no clone contains. */
export function findCitationProblems(root: string, files: readonly SourceFile[]): string[] {
  return files.flatMap(({ path }) =>
    readFileSync(join(root, path), 'utf8')
      .split('\n')
      .flatMap((line, index, all) => {
        const where = `${path}:${index + 1}`
        // The name of a specification may be at the end of the line before.
        const near = `${all[index - 1] ?? ''} ${line.replace(/^\s*\*\s*/, '')}`
        if (/\((?:A|D)-?\d{1,2}[a-z]?\)|\b[AD]\d{1,2}: |UAP A\d+|\bA-\d\d\b/.test(line))
          return [`${where} cites a numbered note that is not in the repository.`]
        if (/§/.test(line) && !specifications.test(near))
          return [`${where} cites a section without naming its specification.`]
        return []
      }),
  )
}
