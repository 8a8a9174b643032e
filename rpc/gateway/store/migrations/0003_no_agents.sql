-- Nobody read it, and clients with ever new ids made it grow to gigabytes.
DROP TABLE agents;
