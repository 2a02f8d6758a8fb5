import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { COMMON, type Command, type Input } from './command.ts'
import { COMMANDS, isGroup, type Leaf } from './commands.ts'
import { ExitCode } from './exit-code.ts'
import { commandHelp, groupHelp, rootHelp, usageOf } from './help.ts'
import { nearest } from './nearest.ts'
import { createOutput, type Output } from './output.ts'

/** Runs the command with the words after its name, and ends the process. */
export async function main(args: readonly string[]): Promise<void> {
  const output = createOutput({ noColor: args.includes('--no-color') })
  // What is waited for may be nothing that keeps a process alive, such as a timer of the runtime.
  setInterval(() => undefined, LONG_MS)
  const code = await dispatch(args, output).catch((error: unknown) => fail(error, output))
  await output.flush()
  process.exit(output.closed.aborted ? ExitCode.Done : code)
}

const LONG_MS = 2 ** 30

async function dispatch(args: readonly string[], output: Output): Promise<ExitCode> {
  const [noun = '', ...rest] = args.filter((word) => word !== '--no-color')
  if (noun === '--version') return print(versionOf(), output)
  if (noun === '' || noun === '-h' || noun === '--help' || noun === 'help')
    return print(rootHelp(), output)
  const entry = Object.hasOwn(COMMANDS, noun) ? COMMANDS[noun] : undefined
  if (!entry) return unknown(noun, Object.keys(COMMANDS), '', output)
  if (!isGroup(entry)) return runLeaf(noun, entry, rest, output)
  const [verb = '', ...words] = rest
  if (verb === '' || verb === '-h' || verb === '--help')
    return print(groupHelp(noun, entry), output)
  const leaf = Object.hasOwn(entry.verbs, verb) ? entry.verbs[verb] : undefined
  if (!leaf) return unknown(verb, Object.keys(entry.verbs), `${noun} `, output)
  return runLeaf(`${noun} ${verb}`, leaf, words, output)
}

async function runLeaf(
  name: string,
  { summary, load }: Leaf,
  words: readonly string[],
  output: Output,
): Promise<ExitCode> {
  const { default: command } = await load()
  const parsed = parse(name, command, words)
  if (typeof parsed === 'string') return misused(parsed, name, command, output)
  if ('help' in parsed.values) return print(commandHelp(name, summary, command), output)
  const { operands } = parsed
  const needed = command.operands.filter(({ isOptional }) => !isOptional)
  const missing = needed[operands.length]
  if (missing) return misused(`<${missing.name}> is missing.`, name, command, output)
  const extra = operands[command.operands.length]
  if (extra !== undefined) return misused(`"${extra}" is one word too many.`, name, command, output)
  return command.run({ ...parsed, output })
}

/** What was given, or what is wrong with it. */
function parse(
  name: string,
  { options }: Command,
  words: readonly string[],
): Pick<Input, 'values' | 'operands'> | string {
  const known = { ...options, ...COMMON }
  try {
    const parsed = parseArgs({ args: [...words], options: known, allowPositionals: true })
    return { values: parsed.values as Input['values'], operands: parsed.positionals }
  } catch (error) {
    const flag = /'(--?[^' ]+)/.exec(error instanceof Error ? error.message : '')?.[1]
    if (flag === undefined || (error as { code?: string }).code !== 'ERR_PARSE_ARGS_UNKNOWN_OPTION')
      return error instanceof Error ? error.message : String(error)
    const meant = nearest(flag.replace(/^-+/, ''), Object.keys(known))
    return `\`${name}\` has no flag ${flag}.${meant === undefined ? '' : ` Did you mean --${meant}?`}`
  }
}

function print(text: string, output: Output): ExitCode {
  output.line(text)
  return ExitCode.Done
}

function misused(problem: string, name: string, command: Command, output: Output): ExitCode {
  output.say(`${output.paint('red', 'error:')} ${problem}`)
  output.say(usageOf(name, command))
  output.say(`More: skein ${name} --help`)
  return ExitCode.Usage
}

function unknown(word: string, known: readonly string[], before: string, output: Output): ExitCode {
  const meant = nearest(word, known)
  output.say(`${output.paint('red', 'error:')} There is no command "${before}${word}".`)
  output.say(
    meant === undefined
      ? `Commands: ${known.join(', ')}.`
      : `Did you mean \`skein ${before}${meant}\`?`,
  )
  return ExitCode.Usage
}

/** Says what went wrong: one line for people, the hint, and the code to look for. */
function fail(error: unknown, output: Output): ExitCode {
  const { message, hint, code, exitCode } = known(error)
  const word = code === undefined || code === 'USAGE' ? '' : output.paint('dim', ` [${code}]`)
  output.say(`${output.paint('red', 'error:')} ${message}${word}`)
  if (hint !== undefined) output.say(hint)
  return exitCode ?? ExitCode.Failed
}

interface Known {
  readonly message: string
  readonly code?: string
  readonly hint?: string
  readonly exitCode?: ExitCode
}

function known(error: unknown): Known {
  if (!(error instanceof Error)) return { message: String(error) }
  // Errors of ours carry these; of others only the message is for people.
  const { code, hint, exitCode } = error as Partial<Known>
  return {
    message: error.message,
    ...(typeof code === 'string' && { code }),
    ...(typeof hint === 'string' && { hint }),
    ...(exitCode !== undefined && { exitCode }),
  }
}

function versionOf(): string {
  const manifest = readFileSync(new URL('../package.json', import.meta.url), 'utf8')
  return String((JSON.parse(manifest) as { version: unknown }).version)
}
