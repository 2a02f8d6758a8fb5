import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/**
 * A file of the conformance data that is next to the repository. Only tests named `*.shared.test.ts`
 * read it, and only their project in vitest.config.ts says where the folder is.
 */
export function sharedText(path: string): string {
  return readFileSync(join(process.env['SKEIN_SHARED'] ?? '', 'conformance', path), 'utf8')
}

/** The Pydantic AI message lists of the corpus, as the bytes they were written with. */
export function corpusTexts(): readonly string[] {
  const lines = sharedText('pydantic-ai/corpus.ndjson').trimEnd().split('\n')
  return lines.map((line) => line.slice(line.indexOf('"messages":') + '"messages":'.length, -1))
}

/** A generated Pydantic AI history by its name. */
export function generatedText(name: string): string {
  return sharedText(`pydantic-ai/${name}.json`).trim()
}
