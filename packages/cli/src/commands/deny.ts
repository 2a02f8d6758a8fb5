import { defineCommand, JSON_OPTION, SERVER_OPTIONS, type Command } from '../command.ts'
import { usageError } from '../command-error.ts'
import { decideOne, DECISION_OPERANDS, FOLLOW_OPTION } from '../decide.ts'

const deny: Command = defineCommand({
  operands: DECISION_OPERANDS,
  options: {
    reason: { type: 'string', value: 'text', description: 'What the agent is told. Required.' },
    ...FOLLOW_OPTION,
    ...JSON_OPTION,
    ...SERVER_OPTIONS,
  },
  examples: [
    'skein deny 7f3a --reason "Past 30 days"',
    'skein deny 7f3a call_2 --reason "No" --json',
  ],
  async run(input) {
    const { reason } = input.values
    if (reason === undefined) throw usageError('A denial needs a reason.', 'Give it with --reason.')
    return decideOne(input, {
      verb: 'deny',
      decide: ({ inbox }, { threadId, interruptId }) =>
        inbox.deny({ threadId, interruptId, reason }),
    })
  },
})

export default deny
