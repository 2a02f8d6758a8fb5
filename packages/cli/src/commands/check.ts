import type { Problem, Registry } from '@skein/runtime'
import { defineCommand, JSON_OPTION, type Command } from '../command.ts'
import { loadDefinitions } from '../connect/definitions.ts'
import { ExitCode } from '../exit-code.ts'
import { problemLine } from '../problem-line.ts'

const check: Command = defineCommand({
  operands: [
    {
      name: 'folder',
      description: 'With agents/, prompts/, tools/ …; default: this one, else the examples.',
      isOptional: true,
    },
  ],
  options: {
    strict: { type: 'boolean', description: 'Warnings are problems.' },
    ...JSON_OPTION,
  },
  examples: ['skein check', 'skein check examples/agents --json'],
  async run({ values, operands: [folder], output }) {
    const { problems, warnings, agents } = await inspect(folder)
    const found = values.strict ? [...problems, ...warnings] : problems
    const names = [...agents]
    if (values.json) output.json({ agents: names, problems: found, warnings })
    else {
      for (const problem of found) output.line(problemLine(problem))
      if (!values.strict) for (const one of warnings) output.say(`warning: ${problemLine(one)}`)
    }
    const count = found.length === 1 ? '1 problem' : `${found.length} problems`
    output.say(found.length > 0 ? count : `No problems. Agents: ${names.join(', ') || 'none'}.`)
    return found.length > 0 ? ExitCode.Failed : ExitCode.Done
  },
})

export default check

interface Found {
  readonly problems: readonly Problem[]
  readonly warnings: readonly Problem[]
  readonly agents: Iterable<string>
}

async function inspect(folder: string | undefined): Promise<Found> {
  const { DefinitionError } = await import('@skein/runtime')
  try {
    const { warnings, agents }: Registry = await loadDefinitions(folder)
    return { problems: [], warnings, agents: agents.keys() }
  } catch (error) {
    if (!(error instanceof DefinitionError)) throw error
    return { problems: error.problems, warnings: [], agents: [] }
  }
}
