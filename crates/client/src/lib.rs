//! A client: it asks the nodes, and puts together what they answer.
