import { existsSync, globSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { bundle } from '../portability/bundle.ts'
import { findBundleProblems } from '../portability/problems.ts'
import { readJson, root, run, zeroDependencyPackages } from '../workspace.ts'
import { entryFiles } from './bundle.ts'
import type { PackedPackage } from './packed.ts'

/**
 * Problems with the way the packed packages are bundled: what a user would lose against one file per source.
 */
export async function findBundlingProblems(
  consumer: string,
  packed: readonly PackedPackage[],
): Promise<string[]> {
  return [
    ...packed.flatMap(strayFiles),
    ...packed.flatMap(renamedClasses),
    ...packed.flatMap(mapProblems),
    ...packed.flatMap(manyFiles),
    ...(await exportProblems(consumer, packed)),
    ...(await identityProblems(consumer)),
    ...(await eagerProblems(consumer)),
    ...(await conditionProblems(consumer)),
    ...(await sizeProblems(consumer, packed)),
  ]
}

function scriptsOf({ folder }: PackedPackage): string[] {
  return globSync('dist/**/*.js', { cwd: folder })
    .map((file) => file.replaceAll('\\', '/'))
    .filter((file) => !/^dist\/(?:demo-agents|docs|example-agents|page)\//.test(file))
}

/** Built JavaScript is an entry or a chunk; anything else is left over from another way of building. */
function strayFiles(packed: PackedPackage): string[] {
  const entries = new Set(entryFiles(packed.manifest).map((file) => file.slice('./'.length)))
  return scriptsOf(packed)
    .filter((file) => !entries.has(file) && !file.startsWith('dist/chunks/'))
    .map((file) => `${packed.name}: ${file} is neither an entry nor a chunk.`)
}

/** An error takes its name from its class, so the bundler must not have changed the name of one. */
function renamedClasses(packed: PackedPackage): string[] {
  return scriptsOf(packed).flatMap((file) => {
    const text = readFileSync(join(packed.folder, file), 'utf8')
    const renamed = text.matchAll(
      /\bclass (\w+\$\w*)|\b(\w+\$\w*) = class\b(?! \w+ (?:extends|\{))/g,
    )
    return [...renamed].map(
      ([, declared, assigned]) =>
        `${packed.name}: ${file} has the class ${declared ?? assigned}: two classes of one name in a chunk.`,
    )
  })
}

/** Each bundled file leads a debugger to sources that are packed with it. */
function mapProblems(packed: PackedPackage): string[] {
  return scriptsOf(packed).flatMap((file) => {
    const path = join(packed.folder, file)
    // Helpers of the bundler have no source here.
    if (/(^|\/)rolldown-runtime-[\w-]+\.js$/.test(file)) return []
    // A file that only gives out what chunks hold has no line of its own.
    if (!readFileSync(path, 'utf8').includes('//# sourceMappingURL=')) {
      const text = readFileSync(path, 'utf8').replaceAll(/^(?:import|export) \{[^}]*\}.*$/gm, '')
      return text.trim() === '' ? [] : [`${packed.name}: ${file} has no source map.`]
    }
    const { sources } = readJson(`${path}.map`) as { readonly sources: readonly string[] }
    return sources
      .filter((source) => !existsSync(join(path, '..', source)))
      .map(
        (source) => `${packed.name}: the map of ${file} leads to ${source}, which is not packed.`,
      )
  })
}

/** How many files of its own package an entry may load: its own, and chunks. */
const MAX_FILES = 8

function manyFiles(packed: PackedPackage): string[] {
  return entryFiles(packed.manifest).flatMap((entry) => {
    const files = [join(packed.folder, entry)]
    for (const file of files) {
      const imports = readFileSync(file, 'utf8').matchAll(/^(?:import|export)\b.*?"(\.[^"]+)";?$/gm)
      for (const [, path = ''] of imports) {
        const imported = join(file, '..', path)
        if (!files.includes(imported)) files.push(imported)
      }
    }
    return files.length > MAX_FILES
      ? [`${packed.name}: ${entry} loads ${files.length} files; at most ${MAX_FILES} are allowed.`]
      : []
  })
}

/** Entry → name of an export → its kind, with the name of a function or class. */
type ExportKinds = Readonly<Record<string, Readonly<Record<string, string>>>>

/** An entry exports what its source exports, and functions and classes have the same names. */
async function exportProblems(
  consumer: string,
  packed: readonly PackedPackage[],
): Promise<string[]> {
  const entries = packed.flatMap((entry) => entry.entries)
  const [published, source] = await Promise.all([
    exportKinds(consumer, entries, []),
    exportKinds(root, entries, ['--conditions=@skein/source']),
  ])
  return entries.flatMap((entry) => {
    const [built = {}, wanted = {}] = [published[entry], source[entry]]
    const names = new Set([...Object.keys(built), ...Object.keys(wanted)])
    return [...names]
      .filter((name) => built[name] !== wanted[name])
      .map(
        (name) =>
          `${entry}: ${name} is ${built[name] ?? 'missing'} as published, ${wanted[name] ?? 'missing'} in the source.`,
      )
  })
}

async function exportKinds(
  cwd: string,
  entries: readonly string[],
  conditions: readonly string[],
): Promise<ExportKinds> {
  const program = `
    const kind = (value) => typeof value === 'function' ? 'function ' + value.name : typeof value
    const all = {}
    for (const entry of process.argv.slice(1)) {
      const module = await import(entry)
      all[entry] = Object.fromEntries(Object.keys(module).map((key) => [key, kind(module[key])]))
    }
    process.stdout.write('\\n' + JSON.stringify(all))`
  const args = ['--no-warnings', ...conditions, '--input-type=module', '-e', program, ...entries]
  const { code, output } = await run('node', args, { cwd, quiet: true, timeoutMs: 60_000 })
  if (code !== 0) throw new Error(`The entries cannot be imported in ${cwd}:\n${output}`)
  return JSON.parse(output.split('\n').at(-1) ?? '') as ExportKinds
}

/** A class is one class for all entries: what one entry throws is an instance of what another gives out. */
async function identityProblems(consumer: string): Promise<string[]> {
  const file = join(consumer, 'identity.js')
  writeFileSync(file, identityProgram)
  const { code, output } = await run('node', [file], { cwd: consumer, quiet: true })
  return code === 0 ? [] : [`classes across entries:\n${output}`]
}

const identityProgram = `
import assert from 'node:assert/strict'
import { SkeinError } from '@skein/base'
import { llm, UPPError } from '@skein/ai'
import { openai } from '@skein/ai/openai'
import { anthropic } from '@skein/ai/anthropic'

const call = (model) => llm({ model, config: { apiKey: 'x', baseUrl: 'http://127.0.0.1:9' } }).generate('hi')
for (const model of [openai('gpt'), anthropic('claude')]) {
  const error = await call(model).then(() => undefined, (thrown) => thrown)
  assert(error instanceof UPPError, String(error))
  assert.equal(error.name, 'UPPError')
  assert(error instanceof SkeinError)
}
`

/** Modules of Node that take milliseconds to load, and are loaded by what needs them. */
const SLOW_BUILTINS = ['crypto', 'fs/promises', 'http', 'inspector', 'v8', 'worker_threads', 'zlib']

/** An import loads nothing that is needed later or never. */
async function eagerProblems(consumer: string): Promise<string[]> {
  const problems: string[] = []
  for (const entry of [
    '@skein/ai',
    '@skein/agents',
    '@skein/governance',
    '@skein/runtime',
    'skein',
  ])
    problems.push(...(await loadedEarly(consumer, entry)))
  return problems
}

async function loadedEarly(consumer: string, entry: string): Promise<string[]> {
  const program = `
    const list = process.moduleLoadList
    const before = list.length
    await import(${JSON.stringify(entry)})
    process.stdout.write(list.slice(before).join('\\n'))`
  const args = ['--no-warnings', '--input-type=module', '-e', program]
  const { output } = await run('node', args, { cwd: consumer, quiet: true })
  return SLOW_BUILTINS.filter((name) => output.split('\n').includes(`NativeModule ${name}`)).map(
    (name) => `${entry}: its import loads node:${name}.`,
  )
}

/** What is behind `#http-client`, by the conditions that each platform sets. */
const clientsByPlatform: Readonly<
  Record<string, readonly [file: string, ...conditions: string[]]>
> = {
  node: ['http-node.js', 'node', 'import'],
  deno: ['http-node.js', 'deno', 'node', 'import'],
  bun: ['http-node.js', 'bun', 'node', 'import'],
  browser: ['http-none.js', 'browser', 'import'],
  worker: ['http-none.js', 'workerd', 'worker', 'browser', 'import'],
}

async function conditionProblems(consumer: string): Promise<string[]> {
  const problems: string[] = []
  for (const [name, [wanted, ...conditions]] of Object.entries(clientsByPlatform)) {
    const code = "export { llm } from '@skein/ai'\nexport * from '@skein/governance/file-log'"
    const { metafile } = await bundle(code, { name, conditions }, consumer, [], true)
    const inputs = Object.keys(metafile.inputs)
    if (!inputs.some((file) => file.endsWith(`/${wanted}`)))
      problems.push(`@skein/ai: under the conditions of ${name}, ${wanted} is not loaded.`)
    const log = conditions.includes('node') ? 'file-log-node.js' : 'file-log.js'
    if (!inputs.some((file) => file.endsWith(`/${log}`)))
      problems.push(`@skein/governance: under the conditions of ${name}, ${log} is not loaded.`)
  }
  return problems
}

/** How much more an application may carry from what is published than from source. */
const MAX_GROWTH = 1.02
/** Less than this is noise. */
const SMALL_BYTES = 200

/** An application that uses one thing carries as much from what is published as from source. */
async function sizeProblems(consumer: string, packed: readonly PackedPackage[]): Promise<string[]> {
  const browser = { name: 'browser', conditions: ['browser'] }
  const { programs } = readJson(join(root, 'scripts', 'portability', 'budgets.json')) as {
    readonly programs: Readonly<Record<string, { code: string; external?: readonly string[] }>>
  }
  const entries = packed
    .filter(({ name }) => zeroDependencyPackages.includes(name))
    .flatMap((entry) => entry.entries)
    .filter((entry) => !/\/node$|\/(?:file|sqlite)-/.test(entry))
  const subjects = [
    ...entries.map((entry) => ({ name: entry, code: `export * from '${entry}'`, external: [] })),
    ...Object.entries(programs).map(([name, program]) => ({ name, external: [], ...program })),
  ]
  const problems: string[] = []
  for (const { name, code, external } of subjects) {
    const [source, published] = await Promise.all([
      bundle(code, browser, root, external),
      bundle(code, browser, consumer, external, true),
    ])
    problems.push(
      ...findBundleProblems(published, consumer)
        // Here our own packages are installed as foreign ones are.
        .filter((problem) => !/^node_modules\/@skein\/\S+ is not ours$/.test(problem))
        .map((problem) => `${name}, as published: ${problem}`),
    )
    const growth = published.minifiedBytes - source.minifiedBytes
    if (growth > SMALL_BYTES && published.minifiedBytes > source.minifiedBytes * MAX_GROWTH)
      problems.push(
        `${name}: ${published.minifiedBytes} bytes minified as published, ${source.minifiedBytes} from source.`,
      )
  }
  return problems
}
