/**
 * `npm run walk`: follows one request (message, tool, approval, answer) through the product and prints the
 * files and functions it enters, in the order in which it first enters them. What a newcomer would have to
 * read to understand one request is what counts here.
 *
 *   --check    fails when the walk is longer than its bound, or docs/walk.md shows another one
 *   --write    writes docs/walk.md
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { registerHooks } from 'node:module'
import { join, relative } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'
import { instrument, type Place } from './walk/instrument.ts'
import { root } from './workspace.ts'

/** No request should take a reader through more files than this. */
const maxFiles = 110

const { values } = parseArgs({
  options: {
    check: { type: 'boolean', default: false },
    write: { type: 'boolean', default: false },
  },
})

interface Stretch {
  readonly title: string
  /** Functions by file, both in order of first touch. */
  readonly files: Map<string, string[]>
}

const places: Place[] = []
const seen = new Set<number>()
const files = new Set<string>()
const stretches: Stretch[] = []
let now: Stretch | undefined

Object.assign(globalThis, {
  walked: (number: number): void => {
    if (!now || seen.has(number)) return
    seen.add(number)
    const { file, name } = places[number]!
    files.add(file)
    now.files.set(file, [...(now.files.get(file) ?? []), name])
  },
})

registerHooks({
  load: (url, context, nextLoad) => {
    const loaded = nextLoad(url, context)
    const file = url.startsWith('file:') ? relative(root, fileURLToPath(url)) : ''
    if (!/^packages\/[^/]+\/src\//.test(file.replaceAll('\\', '/'))) return loaded
    const source = instrument(file.replaceAll('\\', '/'), String(loaded.source), places)
    return { ...loaded, source }
  },
})

const request = pathToFileURL(join(root, 'scripts/walk/request.ts')).href
const { walkedRequest } = (await import(request)) as typeof import('./walk/request.ts')
const answer = await walkedRequest((title) => {
  now = title === '' ? undefined : { title, files: new Map() }
  if (now) stretches.push(now)
})
if (!answer.includes('It is refunded.'))
  throw new Error(`The walked request was not answered. This was streamed:\n${answer}`)

const counts = `${files.size} files, ${seen.size} functions`
const page = [
  '# One request, file by file',
  '',
  'Written by `npm run walk -- --write`. One request goes through the whole product in one process, with the',
  'scripted model and the store in memory: a message, a tool call that needs approval, the approval, the',
  `answer. It enters ${counts}. Each file is listed where it is entered, with the`,
  'functions that are entered for the first time. `npm run check` keeps the walk at most',
  `${maxFiles} files long.`,
  ...stretches.flatMap(({ title, files: entered }) => [
    '',
    `## ${title}`,
    '',
    ...[...entered].map(
      ([file, names]) => `- [${file}](../${file}): ${[...new Set(names)].join(', ')}`,
    ),
  ]),
  '',
].join('\n')

const file = join(root, 'docs/walk.md')
if (values.write) writeFileSync(file, page)
else if (values.check) check()
else console.log(page)
console.log(counts)

function check(): void {
  if (files.size > maxFiles) fail(`The walk enters ${files.size} files; the bound is ${maxFiles}.`)
  const shown = new Set(
    [...readFileSync(file, 'utf8').matchAll(/^- \[([^\]]+)\]/gm)].map((m) => m[1]),
  )
  const missing = [...files].filter((one) => !shown.has(one))
  const gone = [...shown].filter((one) => !files.has(one!))
  if (missing.length + gone.length > 0)
    fail(
      `docs/walk.md is not up to date (${[...missing, ...gone].join(', ')}). Run \`npm run walk -- --write\`.`,
    )
}

function fail(problem: string): void {
  console.error(problem)
  process.exitCode = 1
}
