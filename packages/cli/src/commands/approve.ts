import { defineCommand, JSON_OPTION, SERVER_OPTIONS, type Command } from '../command.ts'
import { decideOne, DECISION_OPERANDS, FOLLOW_OPTION } from '../decide.ts'

const approve: Command = defineCommand({
  operands: DECISION_OPERANDS,
  options: {
    reason: { type: 'string', value: 'text', description: 'Kept beside the decision.' },
    ...FOLLOW_OPTION,
    ...JSON_OPTION,
    ...SERVER_OPTIONS,
  },
  examples: ['skein approve 7f3a', 'skein approve 7f3a call_2 --reason "Lamp arrived broken"'],
  run: (input) =>
    decideOne(input, {
      verb: 'approve',
      decide: ({ inbox }, { threadId, interruptId }) => {
        const { reason } = input.values
        return inbox.approve({ threadId, interruptId, ...(reason !== undefined && { reason }) })
      },
    }),
})

export default approve
