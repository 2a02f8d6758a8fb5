import { existsSync, statSync, writeFileSync } from 'node:fs'
import { findPackageJSON } from 'node:module'
import { dirname, extname, join, relative, resolve } from 'node:path'
import { timeoutOf } from '../follow/show-run.ts'
import {
  type Command,
  defineCommand,
  ExitCode,
  JSON_OPTION,
  untilSignal,
  usageError,
} from '../terminal/command.ts'
import { formatDuration, indented } from '../terminal/format.ts'
import type { Output } from '../terminal/output.ts'
import { pointName } from '../crashtest/point-name.ts'
import type { Program } from '../crashtest/program.ts'
import type { Setting } from '../crashtest/run-point.ts'

const MAX_POINTS = 50
const TIMEOUT_MS = 60_000
const RESTARTS = 3
const MAX_JOBS = 16
/** The time left is shown after this time, in ms: the first crash points say little. */
const GUESS_MS = 1000

/** `skein crashtest` */
export const crashtestCommand: Command = defineCommand({
  operands: [
    {
      name: 'program',
      description:
        'A module, a command in quotes, or a folder with agents/. After `--` come arguments with dashes.',
    },
    { name: 'arguments', description: 'Arguments of the program.', isOptional: true, isRest: true },
  ],
  options: {
    'model-script': {
      type: 'string',
      value: 'file',
      description:
        'Answers calls of models: JSON, or a module that exports a list of steps or a function.',
    },
    record: {
      type: 'string',
      value: 'file',
      description: 'Asks the real vendors in the run without a crash, and keeps the answers here.',
    },
    replay: {
      type: 'string',
      value: 'file',
      description: 'Answers calls of models from a recording.',
    },
    'model-host': {
      type: 'string',
      value: 'hosts',
      description: 'Further hosts that serve models, with port, separated by commas.',
    },
    world: {
      type: 'string',
      value: 'file',
      description:
        'A module that answers other requests: export default () => (request) => Response.',
    },
    'allow-host': {
      type: 'string',
      value: 'hosts',
      description: 'Hosts that may be reached although they are not this machine.',
    },
    ignore: {
      type: 'string',
      value: 'patterns',
      description: 'Requests that do not count, e.g. "POST https://*.example.com/log".',
    },
    'ignore-field': {
      type: 'string',
      value: 'names',
      description: 'Fields of JSON bodies that are not compared, e.g. requestId.',
    },
    'idempotency-header': {
      type: 'string',
      value: 'names',
      description:
        'Headers by which servers recognize repeated requests, which count as one. Default: idempotency-key.',
    },
    effects: {
      type: 'string',
      value: 'file',
      description: 'A file in the folder of which each line counts as an effect.',
    },
    folder: {
      type: 'string',
      value: 'folder',
      description:
        'The folder that each crash point gets a copy of. Default: this one, or the folder with agents/.',
    },
    'max-points': {
      type: 'string',
      value: 'number',
      description: `The most crash points to try. Default: ${MAX_POINTS}.`,
    },
    seed: { type: 'string', value: 'number', description: 'Chooses which, if there are more.' },
    jobs: {
      type: 'string',
      value: 'number',
      description: 'Crash points to try at the same time. Default: 1.',
    },
    timeout: {
      type: 'string',
      value: 'time',
      description: `The longest that one start may take. Default: ${TIMEOUT_MS / 1000}s.`,
    },
    restarts: {
      type: 'string',
      value: 'number',
      description: `How often to start again if the program fails after the crash. Default: ${RESTARTS}.`,
    },
    'held-code': {
      type: 'string',
      value: 'code',
      description: 'The exit code by which the program says that it waits for a person.',
    },
    ready: {
      type: 'string',
      value: 'text',
      description: 'Of a server: what it prints, or an address that answers, when it is ready.',
    },
    send: {
      type: 'string',
      value: 'request',
      description:
        'Of a server: a request to send then, until it is answered: "POST <url> <body>".',
    },
    until: {
      type: 'string',
      value: 'text',
      description:
        'Of a server: what it prints when it is done. Default: no request is in progress.',
    },
    agent: { type: 'string', value: 'name', description: 'Of a folder: the agent to test.' },
    message: { type: 'string', value: 'text', description: 'Of a folder: the message it gets.' },
    verbose: { type: 'boolean', description: 'Also shows how each start ended, with its output.' },
    junit: { type: 'string', value: 'file', description: 'Also writes a JUnit report.' },
    ...JSON_OPTION,
  },
  examples: [
    'skein crashtest refund.ts --model-script script.json --world bank.ts',
    'skein crashtest "npm start" --ready http://127.0.0.1:3000 --send "POST http://127.0.0.1:3000/refunds"',
  ],
  async run({ values, operands, output }) {
    const maxPoints = numberOf(values, 'max-points', { least: 1, standard: MAX_POINTS })
    const seed = numberOf(values, 'seed', { least: 0, standard: 1 })
    const jobs = numberOf(values, 'jobs', { least: 1, most: MAX_JOBS, standard: 1 })
    const restarts = numberOf(values, 'restarts', { least: 0, standard: RESTARTS })
    const [first = ''] = operands
    const isDefinitions = statSync(first, { throwIfNoEntry: false })?.isDirectory() === true
    const folder = resolve(values.folder ?? (isDefinitions ? first : '.'))
    if (!statSync(folder, { throwIfNoEntry: false })?.isDirectory())
      throw usageError(`There is no folder ${folder}.`)
    const { program, isFolder } = programOf(operands, { ...values, folder })
    const [{ crashtest }, { openModels }, { loadWorld }, { REPORTING }, { parseSent }] =
      await Promise.all([
        import('../crashtest/crashtest.ts'),
        import('../crashtest/model-answers.ts'),
        import('../crashtest/world.ts'),
        import('../crashtest/model-hosts.ts'),
        import('../crashtest/server-use.ts'),
      ])
    const { ready, send, until } = values
    if (send !== undefined) parseSent(send) // a mistake is reported before anything runs
    const interrupted = new AbortController()
    void untilSignal().then(() => interrupted.abort())
    const heldCode = isFolder
      ? ExitCode.Waiting
      : values['held-code'] === undefined
        ? undefined
        : numberOf(values, 'held-code', { least: 1, most: 255, standard: 0 })
    const setting: Setting = {
      program,
      folder,
      preload: builtFile('preload'),
      rules: {
        ignored: [...REPORTING, ...listOf(values.ignore)],
        allowedHosts: listOf(values['allow-host']),
        modelHosts: listOf(values['model-host']),
        idempotencyHeaders: listOf(values['idempotency-header'] ?? 'idempotency-key').map((name) =>
          name.toLowerCase(),
        ),
        ignoredFields: listOf(values['ignore-field']),
      },
      models: await openModels({
        script: values['model-script'],
        record: values.record,
        replay: values.replay,
      }),
      makeWorld: await loadWorld(values.world),
      effectsFile: values.effects,
      server: [ready, send, until].some((one) => one !== undefined)
        ? { ready, send, until }
        : undefined,
      heldCode,
      restarts,
      timeoutMs: timeoutOf(values) ?? TIMEOUT_MS,
      signal: interrupted.signal,
      onEnding: values.verbose === true ? showEnding(output) : undefined,
    }
    try {
      const result = await crashtest(setting, {
        maxPoints,
        seed,
        jobs,
        onProgress: progress(output),
      })
      return await report(result, { name: operands.join(' '), seed, values, output })
    } catch (error) {
      if (!interrupted.signal.aborted) throw error
      output.say('Stopped. The program has ended, and its copies are removed.')
      return ExitCode.Interrupted
    }
  },
})

interface ReportOptions {
  readonly name: string
  readonly seed: number
  readonly values: { readonly json?: boolean; readonly junit?: string }
  readonly output: Output
}

async function report(
  result: Awaited<ReturnType<typeof import('../crashtest/crashtest.ts').crashtest>>,
  { name, seed, values, output }: ReportOptions,
): Promise<ExitCode> {
  const [{ effectTable, isBroken, remarks, summary }, { junitReport }] = await Promise.all([
    import('../crashtest/report-text.ts'),
    import('../crashtest/report-junit.ts'),
  ])
  const failed = isBroken(result)
  if (values.junit !== undefined) writeFileSync(values.junit, junitReport(name, result))
  if (values.json === true)
    output.json({ program: name, seed, ok: !failed, summary: summary(result), ...result })
  else {
    for (const line of effectTable(result)) output.line(line)
    output.line('')
    for (const line of remarks(result)) output.line(line)
    output.line(output.paint(failed ? 'red' : 'green', summary(result)))
  }
  return failed ? ExitCode.Failed : ExitCode.Done
}

/** Shows how each start ended, on standard error. */
function showEnding(output: Output): NonNullable<Setting['onEnding']> {
  return ({ how, code, output: text }, point) => {
    const name = point === undefined ? 'without a crash' : pointName(point)
    output.say(`${name}: ${how === 'exited' ? `exit code ${code}` : how.replace('_', ' ')}`)
    if (text.trim() !== '') output.say(`  ${indented(text.trimEnd())}`)
  }
}

/** Shows which crash point is tried, and how much time is left. */
function progress(output: Output): (done: number, total: number) => void {
  const start = performance.now()
  return (done, total) => {
    const ms = performance.now() - start
    const left =
      done > 0 && ms > GUESS_MS ? `, ${formatDuration((ms / done) * (total - done))} left` : ''
    output.status(`crash point ${done + 1} of ${total}${left}`, done === 0)
  }
}

/** What the operands start: the driver of a folder of definitions, a module, or a command. */
function programOf(
  operands: readonly string[],
  {
    folder,
    agent,
    message,
  }: { readonly folder: string; readonly agent?: string; readonly message?: string },
): { readonly program: Program; readonly isFolder: boolean } {
  const [first = '', ...rest] = operands
  const named = resolve(first)
  const path = existsSync(named) ? named : resolve(folder, first)
  const kind = statSync(path, { throwIfNoEntry: false })
  const nodeOptions = isSource() ? ['--conditions=@skein/source'] : []
  if (kind?.isDirectory()) {
    if (!existsSync(join(path, 'agents')))
      throw usageError(
        `${path} has no agents/.`,
        'Name a module, a command, or a folder with agents/.',
      )
    if (agent === undefined || message === undefined)
      throw usageError('A folder needs --agent <name> and --message <text>.')
    const words = [process.execPath, builtFile('drive-agent'), inCopy(path, folder), agent, message]
    return { program: { words, nodeOptions }, isFolder: true }
  }
  if (agent !== undefined || message !== undefined)
    throw usageError('--agent and --message are for a folder with agents/.')
  if (kind?.isFile() && /^\.[cm]?[jt]s$/.test(extname(path)))
    return {
      program: { words: [process.execPath, inCopy(path, folder), ...rest], nodeOptions },
      isFolder: false,
    }
  if (/^[\w./-]+\.[cm]?[jt]s$/.test(first))
    throw usageError(
      `There is no file ${path}.`,
      'The file is looked for in --folder, which is this folder by default.',
    )
  return { program: { words: operands, nodeOptions }, isFolder: false }
}

/** A path as the program sees it in a copy of the folder; a file outside of it is not copied. */
function inCopy(path: string, folder: string): string {
  const inside = relative(folder, path) || '.'
  return inside.startsWith('..') ? path : inside
}

/** The files that other processes load: built in the published package, the source in a clone. */
function builtFile(name: 'preload' | 'drive-agent'): string {
  const folder = dirname(findPackageJSON(import.meta.url)!)
  if (!isSource())
    return join(
      folder,
      'dist',
      'crashtest',
      name === 'preload' ? 'preload/preload.js' : 'drive-agent.js',
    )
  return join(
    folder,
    'src',
    'crashtest',
    name === 'preload' ? 'preload/preload.ts' : 'drive-agent.ts',
  )
}

function isSource(): boolean {
  return !import.meta.filename.endsWith('.js')
}

function listOf(text: string | undefined): string[] {
  return (text ?? '')
    .split(',')
    .map((one) => one.trim())
    .filter((one) => one !== '')
}

function numberOf(
  values: Readonly<Record<string, string | boolean | undefined>>,
  name: string,
  {
    least,
    most = Number.MAX_SAFE_INTEGER,
    standard,
  }: { readonly least: number; readonly most?: number; readonly standard: number },
): number {
  const text = values[name]
  if (text === undefined) return standard
  const number = Number(text)
  if (Number.isSafeInteger(number) && number >= least && number <= most) return number
  const range = most === Number.MAX_SAFE_INTEGER ? `from ${least} on` : `from ${least} to ${most}`
  throw usageError(`--${name} takes a whole number ${range}.`)
}
