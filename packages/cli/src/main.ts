import { readFileSync } from 'node:fs'
import { findPackageJSON } from 'node:module'
import { parseArgs } from 'node:util'
import { closest, messageOf } from '@skein/base'
import { COMMANDS, isGroup, type Group, type Leaf } from './commands.ts'
import { COMMON, ExitCode, type Command, type Input, type Options } from './terminal/command.ts'
import { createOutput, type Output } from './terminal/output.ts'

/** The interval of a timer: longer than any command runs, but short enough for `setInterval`. */
const FOREVER_MS = 2 ** 30

/** Runs the command named by the words after `skein`, and ends the process with its exit code. */
export async function main(args: readonly string[]): Promise<void> {
  const output = createOutput({ noColor: args.includes('--no-color') })
  // This interval keeps the process alive while a command waits, because timers of the runtime do not keep it alive.
  setInterval(() => undefined, FOREVER_MS)
  const code = await dispatch(args, output).catch((error: unknown) => fail(error, output))
  await output.flush()
  process.exit(output.closed.aborted ? ExitCode.Done : code)
}

async function dispatch(args: readonly string[], output: Output): Promise<ExitCode> {
  const [noun = '', ...rest] = args.filter((word) => word !== '--no-color')
  if (noun === '--version' || noun === '-v' || noun === '-V') {
    const manifest = readFileSync(findPackageJSON(import.meta.url)!, 'utf8')
    return print(String((JSON.parse(manifest) as { version: unknown }).version), output)
  }
  // `skein help run` means `skein run --help`; `skein help` alone prints the list of commands.
  if (noun === 'help' && rest.length > 0) return dispatch([...rest, '--help'], output)
  if (noun === '' || noun === 'help' || isHelp(noun)) return print(rootHelp(), output)
  const entry = Object.hasOwn(COMMANDS, noun) ? COMMANDS[noun] : undefined
  if (!entry) return unknownCommand(noun, rest, output)
  if (!isGroup(entry)) return runLeaf(noun, entry, rest, output)
  const [verb = '', ...words] = rest
  if (verb === '' || isHelp(verb)) return print(groupHelp(noun, entry), output)
  const leaf = Object.hasOwn(entry.verbs, verb) ? entry.verbs[verb] : undefined
  if (!leaf)
    return refuseCommand(noun, verb, suggestion(verb, Object.keys(entry.verbs), noun), output)
  return runLeaf(`${noun} ${verb}`, leaf, words, output)
}

function isHelp(word: string): boolean {
  return word === '-h' || word === '--help'
}

function print(text: string, output: Output): ExitCode {
  output.line(text)
  return ExitCode.Done
}

/** Words that other programs use for a command, and the command of Skein that does the same. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  ...Object.fromEntries(['init', 'create', 'new'].map((word) => [word, 'npm create skein'])),
  ...Object.fromEntries(['start', 'up', 'ui', 'studio', 'open'].map((word) => [word, 'skein dev'])),
  ...Object.fromEntries(['ls', 'ps', 'history'].map((word) => [word, 'skein thread list'])),
  ...Object.fromEntries(['logs', 'log', 'watch'].map((word) => [word, 'skein thread tail'])),
  ...Object.fromEntries(['ask', 'send', 'exec'].map((word) => [word, 'skein run'])),
  ...Object.fromEntries(['deploy', 'prod'].map((word) => [word, 'skein serve'])),
  ...Object.fromEntries(['approvals', 'pending'].map((word) => [word, 'skein inbox'])),
  ...Object.fromEntries(['validate', 'lint'].map((word) => [word, 'skein check'])),
  version: 'skein --version',
}

function unknownCommand(word: string, rest: readonly string[], output: Output): ExitCode {
  if (word.startsWith('--')) {
    const command = rest.find((one) => Object.hasOwn(COMMANDS, one)) ?? '<command>'
    return refuseCommand(
      '',
      word,
      `Flags come after the command: skein ${command} … ${word}`,
      output,
    )
  }
  const owner = Object.entries(COMMANDS).find(
    ([, entry]) => isGroup(entry) && Object.hasOwn(entry.verbs, word),
  )
  const replacement = Object.hasOwn(ELSEWHERE, word) ? ELSEWHERE[word] : undefined
  if (replacement !== undefined)
    return refuseCommand('', word, `Did you mean \`${replacement}\`?`, output)
  return owner
    ? refuseCommand('', word, `Did you mean \`skein ${owner[0]} ${word}\`?`, output)
    : refuseCommand('', word, suggestion(word, Object.keys(COMMANDS)), output)
}

function suggestion(word: string, known: readonly string[], noun = ''): string {
  const nearestName = nearest(word, known)
  return nearestName === undefined
    ? `Commands: ${known.join(', ')}.`
    : `Did you mean \`${['skein', noun, nearestName].filter(Boolean).join(' ')}\`?`
}

function refuseCommand(noun: string, word: string, hint: string, output: Output): ExitCode {
  const name = [noun, word].filter(Boolean).join(' ')
  output.say(`${output.paint('red', 'error:')} There is no command "${name}".`)
  output.say(hint)
  return ExitCode.Usage
}

async function runLeaf(
  name: string,
  { summary, load }: Leaf,
  words: readonly string[],
  output: Output,
): Promise<ExitCode> {
  const command = await load()
  const input = parseWords(name, command, words)
  if (typeof input !== 'string')
    return 'help' in input.values
      ? print(commandHelp(name, summary, command), output)
      : command.run({ ...input, output })
  output.say(`${output.paint('red', 'error:')} ${input}`)
  output.say(`E.g.: ${command.examples[0]}`)
  output.say(usageOf(name, command))
  output.say(`More: skein ${name} --help`)
  return ExitCode.Usage
}

/** Parses the flags and operands. Returns them, or a sentence about what is wrong. */
function parseWords(
  name: string,
  { options, operands }: Command,
  words: readonly string[],
): Pick<Input, 'values' | 'operands'> | string {
  const flagOptions: Options = { ...options, ...COMMON }
  try {
    const result = parseArgs({ args: [...words], options: flagOptions, allowPositionals: true })
    const values = result.values as Input['values'] // `parseArgs` checked them against `options`
    const positionals = result.positionals
    const missing = operands.filter(({ isOptional }) => !isOptional)[positionals.length]
    const extra = operands.at(-1)?.isRest === true ? undefined : positionals[operands.length]
    if (missing && !('help' in values)) return `<${missing.name}> is missing.`
    if (extra !== undefined && !('help' in values)) {
      const phrase = [positionals[operands.length - 1], extra].filter((word) => word !== undefined)
      const hint =
        phrase.length < 2 ? '' : ` Put words that belong together in quotes: "${phrase.join(' ')}".`
      return `"${extra}" is one argument too many.${hint}`
    }
    return { values, operands: positionals }
  } catch (error) {
    // The message may name a flag in two ways, `-v, --verbose`; the long name is taken.
    const [, flag = ''] = /'(?:-\w, )?(--?[^' ,]+)/.exec(messageOf(error)) ?? []
    const word = flag.replace(/^-+/, '')
    const option = Object.hasOwn(flagOptions, word) ? flagOptions[word] : undefined
    const { code } = error as { readonly code?: string }
    if (code === 'ERR_PARSE_ARGS_INVALID_OPTION_VALUE' && option)
      return option.type === 'boolean'
        ? `${flag} takes no value.`
        : `${flag} has no value. Write one after it: ${flag} <${option.value}>`
    if (code !== 'ERR_PARSE_ARGS_UNKNOWN_OPTION' || flag === '') return messageOf(error)
    return `\`${name}\` has no flag ${flag}. ${flagHint(name, word, { options, operands })}`
  }
}

function flagHint(
  name: string,
  word: string,
  { options, operands }: Pick<Command, 'options' | 'operands'>,
): string {
  const flags = Object.keys({ ...options, ...COMMON })
  const nearestFlag = nearest(word, flags)
  if (operands.some((operand) => operand.name === word))
    return `Give it without a flag: ${wordsOf(name, operands)}`
  return nearestFlag === undefined || word.length < 2
    ? `Its flags: ${flags.map((flag) => `--${flag}`).join(', ')}.`
    : `Did you mean --${nearestFlag}?`
}

/**
 * Finds the known word that was probably meant. At least two letters may differ, because commands are
 * short.
 */
function nearest(word: string, known: readonly string[]): string | undefined {
  return closest(word, known, Math.max(2, Math.floor(word.length / 3)))
}

/** Prints an error: its message and code on one line, then the hint. Returns the exit code. */
function fail(error: unknown, output: Output): ExitCode {
  // Errors of Skein have a code and a hint; other errors have only a message.
  const { message, code, hint, exitCode } = (
    error instanceof Error ? error : { message: String(error) }
  ) as {
    readonly message: string
    readonly code?: unknown
    readonly hint?: unknown
    readonly exitCode?: ExitCode
  }
  const word = typeof code !== 'string' || code === 'USAGE' ? '' : output.paint('dim', ` [${code}]`)
  output.say(`${output.paint('red', 'error:')} ${message}${word}`)
  if (typeof hint === 'string') output.say(hint)
  return exitCode ?? ExitCode.Failed
}

/** Returns the help of `skein` itself: every command and the exit codes. */
function rootHelp(): string {
  return [
    'skein: agents in durable threads',
    '',
    'Usage: skein <command> [flags]        skein help <command>',
    '',
    'Commands:',
    ...table(Object.entries(COMMANDS).map(([name, { summary }]) => [name, summary])),
    '',
    'Flags:',
    ...optionLines({
      version: { type: 'boolean', short: 'v', description: 'Prints the version.' },
      ...COMMON,
    }),
    '',
    'Examples:',
    '  skein dev',
    '  skein run support "Where is order O-7?"',
    '',
    'Results go to standard output, messages to standard error. Exit codes: 0 done, 1 failed, 2 wrong usage,',
    '3 waiting for a person, 4 refused by a gate, 5 limit or budget reached, 124 timed out, 130 interrupted.',
  ].join('\n')
}

/** Returns the help of a group of commands, such as `skein thread`. */
function groupHelp(noun: string, { summary, verbs }: Group): string {
  const [first, second] = Object.keys(verbs)
  return [
    summary,
    '',
    `Usage: skein ${noun} <command> [flags]`,
    '',
    'Commands:',
    ...table(Object.entries(verbs).map(([verb, leaf]) => [verb, leaf.summary])),
    '',
    'Examples:',
    `  skein ${noun} ${first}`,
    `  skein ${noun} ${second} --help`,
  ].join('\n')
}

/** Returns the help of one command: operands, flags and examples. */
export function commandHelp(name: string, summary: string, command: Command): string {
  const { operands, options, examples } = command
  const words = operands.map((operand): [string, string] => [operand.name, operand.description])
  return [
    summary,
    '',
    usageOf(name, command),
    ...(words.length > 0 ? ['', ...table(words)] : []),
    '',
    'Flags:',
    ...optionLines({ ...options, ...COMMON }),
    '',
    'Examples:',
    ...examples.map((example) => `  ${example}`),
  ].join('\n')
}

/** Returns the usage line of a command. */
function usageOf(name: string, { operands }: Command): string {
  return `Usage: ${wordsOf(name, operands)} [flags]`
}

function wordsOf(name: string, operands: Command['operands']): string {
  const words = operands.map(({ name: operand, isOptional, isRest }) => {
    const word = isRest ? `${operand}…` : operand
    return isOptional ? `[${word}]` : `<${word}>`
  })
  return ['skein', name, ...words].join(' ')
}

function optionLines(options: Options): string[] {
  return table(
    Object.entries(options).map(([name, option]) => {
      const short = option.short === undefined ? '    ' : `-${option.short}, `
      const value = option.type === 'string' ? ` <${option.value}>` : ''
      return [`${short}--${name}${value}`, option.description]
    }),
  )
}

function table(rows: readonly (readonly [string, string])[]): string[] {
  const width = Math.max(...rows.map(([left]) => left.length))
  return rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}`)
}
