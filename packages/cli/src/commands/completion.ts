import { COMMANDS, isGroup } from '../commands.ts'
import { withConnection } from '../connect/connect.ts'
import {
  type Command,
  COMMON,
  defineCommand,
  ExitCode,
  SERVER_OPTIONS,
  usageError,
} from '../terminal/command.ts'
import type { Output } from '../terminal/output.ts'

/** `skein completion` */
export const completion: Command = defineCommand({
  operands: [
    { name: 'shell', description: 'bash, zsh or fish; `agents` and `threads` print their names.' },
  ],
  options: SERVER_OPTIONS,
  examples: ['source <(skein completion bash)', 'skein completion fish | source'],
  async run({ values, operands: [shell = ''], output }) {
    const { agents, threads } = NAMES
    if (shell === 'agents') return printNames(agents, values, output)
    if (shell === 'threads') return printNames(threads, values, output)
    const script = SCRIPTS[shell]
    if (!script)
      throw usageError(`There is no completion for "${shell}".`, 'Shells: bash, zsh, fish.')
    for (const line of script(await readTable())) output.line(line)
    return ExitCode.Done
  },
})

type Names = (client: import('@skein/server/client').Client) => Promise<readonly string[]>

const NAMES: Readonly<Record<'agents' | 'threads', Names>> = {
  agents: async ({ agents }) => (await agents.list()).map(({ name }) => name),
  threads: async ({ threads }) => (await threads.list({ limit: 50 })).map(({ id }) => id),
}

function printNames(
  names: Names,
  values: Parameters<typeof withConnection>[0],
  output: Output,
): Promise<ExitCode> {
  return withConnection(values, output, async ({ client }) => {
    for (const name of await names(client)) output.line(name)
    return ExitCode.Done
  })
}

/** One command, as the scripts need it. */
interface Entry {
  readonly name: string
  readonly summary: string
  readonly flags: readonly string[]
  /** What the first operand names. */
  readonly operand: 'agents' | 'threads' | 'files'
}

/** Loads all commands with their options; both the help and the completion of shells are made from them. */
async function readTable(): Promise<readonly Entry[]> {
  const leaves = Object.entries(COMMANDS).flatMap(([noun, entry]) =>
    isGroup(entry)
      ? Object.entries(entry.verbs).map(([verb, leaf]) => ({ name: `${noun} ${verb}`, leaf }))
      : [{ name: noun, leaf: entry }],
  )
  return Promise.all(
    leaves.map(async ({ name, leaf }) => {
      const { operands, options } = await leaf.load()
      const [first] = operands
      return {
        name,
        summary: leaf.summary,
        flags: Object.keys({ ...options, ...COMMON }).map((flag) => `--${flag}`),
        operand:
          first?.name === 'agent' ? 'agents' : first?.name === 'thread' ? 'threads' : 'files',
      } as const
    }),
  )
}

const groups = (): readonly (readonly [string, readonly string[]])[] =>
  Object.entries(COMMANDS).flatMap(([noun, entry]) =>
    isGroup(entry) ? [[noun, Object.keys(entry.verbs)] as const] : [],
  )

const SCRIPTS: Readonly<Record<string, (entries: readonly Entry[]) => readonly string[]>> = {
  bash: bashScript,
  // zsh understands the functions of bash.
  zsh: (entries) => [
    'autoload -U +X compinit bashcompinit && compinit && bashcompinit',
    ...bashScript(entries),
  ],
  fish: fishScript,
}

function bashScript(entries: readonly Entry[]): readonly string[] {
  const list = groups()
  return [
    '_skein() {',
    '  local cur="${COMP_WORDS[COMP_CWORD]}" command="${COMP_WORDS[1]}" at=2 flags="" names=""',
    '  COMPREPLY=()',
    '  if [ "$COMP_CWORD" -eq 1 ]; then',
    `    COMPREPLY=($(compgen -W "${Object.keys(COMMANDS).join(' ')} help" -- "$cur")); return`,
    '  fi',
    '  case "$command" in',
    ...list.flatMap(([noun, verbs]) => [
      `    ${noun})`,
      `      if [ "$COMP_CWORD" -eq 2 ]; then COMPREPLY=($(compgen -W "${verbs.join(' ')}" -- "$cur")); return; fi`,
      '      command="$command ${COMP_WORDS[2]}"; at=3 ;;',
    ]),
    '  esac',
    '  case "$command" in',
    ...entries.map(
      ({ name, flags, operand }) =>
        `    "${name}") flags="${flags.join(' ')}"; names="${operand}" ;;`,
    ),
    '  esac',
    '  case "$cur" in',
    '    -*) COMPREPLY=($(compgen -W "$flags" -- "$cur")) ;;',
    '    *)',
    '      if [ "$COMP_CWORD" -eq "$at" ] && [ "$names" != files ] && [ -n "$names" ]; then',
    '        COMPREPLY=($(compgen -W "$(skein completion "$names" 2>/dev/null)" -- "$cur"))',
    '      else COMPREPLY=($(compgen -f -- "$cur")); fi ;;',
    '  esac',
    '}',
    'complete -F _skein skein',
  ]
}

function fishScript(entries: readonly Entry[]): readonly string[] {
  const inQuotes = (text: string): string => `'${text.replace(/['\\]/g, '\\$&')}'`
  const root = Object.entries(COMMANDS).map(
    ([noun, { summary }]) =>
      `complete -c skein -f -n __fish_use_subcommand -a ${noun} -d ${inQuotes(summary)}`,
  )
  const rest = entries.flatMap(({ name, summary, flags, operand }) => {
    const [noun, verb] = name.split(' ')
    const condition = `__fish_seen_subcommand_from ${noun}`
    const verbs = groups().find(([group]) => group === noun)?.[1] ?? []
    const here =
      verb === undefined ? condition : `${condition}; and __fish_seen_subcommand_from ${verb}`
    const own = `complete -c skein -n ${inQuotes(here)}`
    return [
      ...(verb === undefined
        ? []
        : [
            `complete -c skein -f -n ${inQuotes(`${condition}; and not __fish_seen_subcommand_from ${verbs.join(' ')}`)} -a ${verb} -d ${inQuotes(summary)}`,
          ]),
      ...flags.map((flag) => `${own} -l ${flag.slice(2)}`),
      ...(operand === 'files' ? [] : [`${own} -f -a '(skein completion ${operand} 2>/dev/null)'`]),
    ]
  })
  return [...root, ...rest]
}
