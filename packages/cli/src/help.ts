import { COMMANDS, type Group } from './commands.ts'
import { COMMON, type Command, type Options } from './terminal/command.ts'

/** Returns the help of `skein` itself: every command and the exit codes. */
export function rootHelp(): string {
  return [
    'skein: agents in durable threads',
    '',
    'Usage: skein <command> [flags]',
    '',
    'Commands:',
    ...table(Object.entries(COMMANDS).map(([name, { summary }]) => [name, summary])),
    '',
    'Flags:',
    ...optionLines({ version: { type: 'boolean', description: 'Prints the version.' }, ...COMMON }),
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
export function groupHelp(noun: string, { summary, verbs }: Group): string {
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
export function usageOf(name: string, { operands }: Command): string {
  const words = operands.map(({ name: operand, isOptional }) =>
    isOptional ? `[${operand}]` : `<${operand}>`,
  )
  return ['Usage: skein', name, ...words, '[flags]'].join(' ')
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
