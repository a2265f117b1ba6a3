"""The schemas of messages in Avro and Protobuf: from a registry, by the ids that messages name, or from a file."""
