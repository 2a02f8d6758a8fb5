/**
 * `node --conditions=@skein/source scripts/trace-request.ts`: follows one request (message, tool, approval, answer)
 * through the product and prints the files and functions that it enters, in the order in which it first enters
 * them, as Markdown. It counts the lines of these files, and how often the request switches from file to file.
 */
import { readFileSync } from 'node:fs'
import { registerHooks } from 'node:module'
import { join, relative } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { instrument, type Place } from './trace-request/instrument.ts'
import { root } from './workspace.ts'

interface Stage {
  readonly title: string
  /** Functions by file, both in order of first entry. */
  readonly files: Map<string, string[]>
}

const places: Place[] = []
const entered = new Set<number>()
const files = new Set<string>()
const stages: Stage[] = []
let stage: Stage | undefined
let lastFile = ''
let switches = 0

Object.assign(globalThis, {
  enteredFunction: (number: number): void => {
    if (!stage) return
    const { file, name } = places[number]!
    if (file !== lastFile) switches++
    lastFile = file
    if (entered.has(number)) return
    entered.add(number)
    files.add(file)
    stage.files.set(file, [...(stage.files.get(file) ?? []), name])
  },
})

registerHooks({
  load: (url, context, nextLoad) => {
    const module = nextLoad(url, context)
    const file = url.startsWith('file:') ? relative(root, fileURLToPath(url)) : ''
    if (!/^packages\/[^/]+\/src\//.test(file.replaceAll('\\', '/'))) return module
    const source = instrument(file.replaceAll('\\', '/'), String(module.source), places)
    return { ...module, source }
  },
})

const request = pathToFileURL(join(root, 'scripts/trace-request/request.ts')).href
const { tracedRequest } = (await import(request)) as typeof import('./trace-request/request.ts')
const answer = await tracedRequest((title) => {
  stage = title === '' ? undefined : { title, files: new Map() }
  if (stage) stages.push(stage)
})
if (!answer.includes('It is refunded.'))
  throw new Error(`The traced request was not answered. This was streamed:\n${answer}`)

const lines = [...files]
  .map((file) => readFileSync(join(root, file), 'utf8').split('\n').length - 1)
  .reduce((sum, count) => sum + count, 0)
const page = [
  '# One request, file by file',
  '',
  'One request goes through the whole product in one process, with the scripted model and the store in memory:',
  'a message, a tool call that needs approval, the approval, the answer.',
  `It enters ${entered.size} functions in ${files.size} files, which have ${lines} lines, and switches ${switches} times from`,
  'one file to another. Each file is listed where it is entered, with the functions that are entered for the first time.',
  ...stages.flatMap(({ title, files: inStage }) => [
    '',
    `## ${title}`,
    '',
    ...[...inStage].map(([file, names]) => `- ${file}: ${[...new Set(names)].join(', ')}`),
  ]),
].join('\n')
console.log(page)
