export { gateway, type Gateway, type GatewayOptions } from './gateway.ts'
export { type GatewayClient, type GatewayKey, type KeyLookup } from './clients.ts'
export { type GatewayLimits } from './clients.ts'
export {
  servedModel,
  type GatewayAnswer,
  type GatewayReply,
  type GatewayRequest,
} from './served-model.ts'
export { oneMessage } from './answer-wire.ts'
export { translateParams, type TranslatedParams } from './translate-params.ts'
