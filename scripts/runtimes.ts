/**
 * `node --conditions=@skein/source scripts/runtimes.ts`: the portable packages, as published, in the runtimes that docs/versioning.md claims: Node 24,
 * Node 22, Bun and Deno, all from npm. One that npm cannot install here is skipped with a line.
 */
import { spawnSync } from 'node:child_process'
import {
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { basename, join } from 'node:path'
import { calls, says, startVendorServer } from '@skein/ai/testing'
import { bundlePackage } from './build/bundle.ts'
import { findExamples } from './examples/example.ts'
import { installPeers, peersOf } from './peers.ts'
import type { SuiteResult } from './runtimes/suite.ts'
import { findPackages, root, run, zeroDependencyPackages } from './workspace.ts'

const PEERS = 'runtimes'
/** What the suite imports besides packages. */
const EVENTS = '../../packages/threads/test/sample-events.ts'
const folder = join(root, '.tmp', 'runtimes')
const failure = await installPeers(PEERS)
if (failure !== undefined) console.log(`npm could not install ${PEERS}:\n${failure}`)
const installed = join(peersOf(PEERS).folder, 'node_modules')

const runtimes: ReadonlyArray<readonly [name: string, program: string, ...args: string[]]> = [
  ['Node 24', process.execPath],
  ['Node 22', join(installed, 'node-22', 'bin', 'node')],
  ['Bun', join(installed, '@oven', 'bun-linux-x64', 'bin', 'bun')],
  [
    'Deno',
    join(installed, '@deno', 'linux-x64-glibc', 'deno'),
    'run',
    '-A',
    '--no-lock',
    '--node-modules-dir=manual',
  ],
]

const vendor = await startVendorServer(
  ({ messages }) =>
    messages.some(({ type }) => type === 'tool_result')
      ? says('It is 5. Grüße!')
      : calls('add', { a: 2, b: 3 }),
  { chunkBytes: 7 },
)
await writeFolder()
const digests = new Map<string, string>()
let isWrong = false
for (const [name, program, ...args] of runtimes) {
  if (!existsSync(program)) {
    console.log(`skipped: ${name}, which npm has not installed here`)
    continue
  }
  const version = versionOf(program)
  const start = performance.now()
  // Keys of vendors are hidden, as for the examples.
  const { code, output } = await run(program, [...args, 'suite.ts'], {
    cwd: folder,
    quiet: true,
    timeoutMs: 60_000,
    env: { NO_COLOR: '1', NODE_OPTIONS: '--disable-warning=ExperimentalWarning' },
  })
  const seconds = ((performance.now() - start) / 1000).toFixed(1)
  const result = resultOf(output)
  const failures = result?.failures ?? [`ended with ${code} and no result:\n${output}`]
  const differences = Object.entries(result?.digests ?? {}).filter(
    ([what, digest]) => (digests.get(what) ?? digest) !== digest,
  )
  for (const [what, digest] of Object.entries(result?.digests ?? {}))
    if (!digests.has(what)) digests.set(what, digest)
  const problems = [
    ...failures,
    ...differences.map(([what]) => `other bytes than in Node 24: ${what}`),
  ]
  console.log(
    `${problems.length === 0 ? 'ok  ' : 'FAIL'} ${name} ${version}: ${result?.checks ?? 0} checks, ${seconds} s`,
  )
  for (const problem of problems) console.log(`  ${problem}`)
  isWrong ||= problems.length > 0
}
await vendor.close()
process.exitCode = isWrong ? 1 : 0

/** The packages with nothing but what is published, the examples that use no other package, and the suite. */
async function writeFolder(): Promise<void> {
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(join(folder, 'node_modules', '@skein'), { recursive: true })
  writeFileSync(join(folder, 'package.json'), '{ "private": true, "type": "module" }\n')
  const packages = findPackages().filter(({ name }) => zeroDependencyPackages.includes(name))
  for (const one of packages) {
    await bundlePackage(one)
    const target = join(folder, 'node_modules', one.name)
    cpSync(join(one.folder, 'dist'), join(target, 'dist'), { recursive: true })
    cpSync(join(one.folder, 'package.json'), join(target, 'package.json'))
  }
  symlinkSync(join(root, 'node_modules', 'zod'), join(folder, 'node_modules', 'zod'), 'junction')
  const suite = readFileSync(join(import.meta.dirname, 'runtimes', 'suite.ts'), 'utf8')
  writeFileSync(join(folder, 'suite.ts'), suite.replace(EVENTS, './sample-events.ts'))
  // Its imports from the source are types, which every runtime removes.
  cpSync(join(import.meta.dirname, 'runtimes', EVENTS), join(folder, 'sample-events.ts'))
  const entries = packages.flatMap(({ name, manifest }) =>
    Object.keys(manifest.exports ?? {})
      .filter((path) => !path.endsWith('.json'))
      .map((path) => name + path.slice(1)),
  )
  const examples = findExamples()
    .filter(({ file, expected }) => expected !== undefined && isPortable(file))
    .map(({ name, file, expected }) => {
      // Each example has its helpers for itself, because some hold state.
      const own = join(folder, 'examples', name)
      cpSync(join(root, 'examples'), own, {
        recursive: true,
        filter: (path) => !/\d\d-[^/\\]*$|agents$/.test(path),
      })
      cpSync(file, join(own, basename(file)))
      return { file: `examples/${name}/${basename(file)}`, expected }
    })
  const task = { entries, examples, vendors: vendor.baseUrls }
  writeFileSync(join(folder, 'task.json'), JSON.stringify(task))
}

/** Whether an example uses our portable packages, Zod and files alone, and one process. */
function isPortable(file: string): boolean {
  const source = readFileSync(file, 'utf8')
  const imports = [...source.matchAll(/from '([^']+)'/g)].map((match) => match[1] ?? '')
  return imports.every(
    (name) =>
      name === 'zod' ||
      (name.startsWith('./') && !/two-processes/.test(name)) ||
      /^node:(?:fs|fs\/promises|os|path|crypto)$/.test(name) ||
      zeroDependencyPackages.some((own) => name === own || name.startsWith(`${own}/`)),
  )
}

function versionOf(program: string): string {
  const { stdout } = spawnSync(program, ['--version'], { encoding: 'utf8' })
  return /\d+\.\d+\.\d+/.exec(stdout)?.[0] ?? ''
}

function resultOf(output: string): SuiteResult | undefined {
  const line = output.split('\n').find((text) => text.startsWith('{"checks":'))
  return line === undefined ? undefined : (JSON.parse(line) as SuiteResult)
}
