import { toolFrom, type ToolDefinition } from '@skein/runtime'
import { pay } from '../bank-client.ts'
import { paymentArgs, type PaymentArgs } from '../payment-args.ts'

/** Charges the price difference of an exchange, and says how that is undone. */
const charge: ToolDefinition = toolFrom(
  {
    name: 'charge',
    description: 'Charges the price difference.',
    parameters: paymentArgs,
    async run(args: PaymentArgs) {
      await pay({ type: 'charge', ...args })
      return `Charged ${args.amount} for ${args.order}.`
    },
  },
  {
    risk: 'write_low_risk',
    rollback: (args) => ({
      type: 'tool_call',
      target: 'cancel_charge',
      payload: { ...(args as PaymentArgs) },
    }),
  },
)

export default charge
