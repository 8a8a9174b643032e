package proxy

// IsOfThisMachine is the default of Config.IsOwn.
var IsOfThisMachine = isOfThisMachine
