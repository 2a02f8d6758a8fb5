import { type AgentDefinition, defineAgent } from '@skein/runtime'

/** Without a shipment its result lacks evidence, and its writes are undone. */
const judged: AgentDefinition = defineAgent({
  name: 'judged',
  sideA: { prompt: 'desk' },
  taskClass: {
    name: 'proven',
    verifiers: [],
    needs: [{ type: 'tool_result', source: 'ship' }],
    repair: { max: 0 },
    acceptInDoubt: true,
  },
})

export default judged
