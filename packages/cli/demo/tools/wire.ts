import { toolFrom, type ToolDefinition } from '@skein/runtime'
import { pay } from '../bank-client.ts'
import { paymentArgs, type PaymentArgs } from '../payment-args.ts'

/** Pays to an account. There is no way to look this up, so after a crash only a person can say whether it was paid. */
const wire: ToolDefinition = toolFrom(
  {
    name: 'wire',
    description: 'Pays the money for an order back by bank transfer.',
    parameters: paymentArgs,
    async run(args: PaymentArgs) {
      await pay({ type: 'wire', ...args })
      return `Wired ${args.amount} for ${args.order}.`
    },
  },
  { risk: 'write_high_risk', rollback: 'impossible' },
)

export default wire
