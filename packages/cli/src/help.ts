import { COMMON, type Command, type Option } from './command.ts'
import { COMMANDS, type Group } from './commands.ts'

/** The first page. */
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
    ...optionLines({ version: { type: 'boolean', description: 'The version.' }, ...COMMON }),
    '',
    'Examples:',
    '  skein dev',
    '  skein run support "Where is order O-7?"',
    '',
    'Data goes to standard output, words to standard error. Exit codes: 0 done, 1 failed, 2 usage,',
    '3 waiting for a person, 4 refused by a gate, 5 limit or budget, 124 timed out, 130 interrupted.',
  ].join('\n')
}

export function groupHelp(noun: string, { summary, verbs }: Group): string {
  return [
    summary,
    '',
    `Usage: skein ${noun} <command> [flags]`,
    '',
    'Commands:',
    ...table(Object.entries(verbs).map(([verb, leaf]) => [verb, leaf.summary])),
    '',
    'Examples:',
    `  skein ${noun} ${Object.keys(verbs)[0]}`,
    `  skein ${noun} ${Object.keys(verbs)[1]} --help`,
  ].join('\n')
}

export function commandHelp(name: string, summary: string, command: Command): string {
  const { operands, options, examples } = command
  return [
    summary,
    '',
    usageOf(name, command),
    ...(operands.length > 0
      ? ['', ...table(operands.map((operand) => [operand.name, operand.description]))]
      : []),
    '',
    'Flags:',
    ...optionLines({ ...options, ...COMMON }),
    '',
    'Examples:',
    ...examples.map((example) => `  ${example}`),
  ].join('\n')
}

export function usageOf(name: string, { operands }: Command): string {
  const words = operands.map(({ name: operand, isOptional }) =>
    isOptional ? `[${operand}]` : `<${operand}>`,
  )
  return ['Usage: skein', name, ...words, '[flags]'].join(' ')
}

function optionLines(options: Readonly<Record<string, Option>>): string[] {
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
